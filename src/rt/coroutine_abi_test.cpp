// Compilers that destroy temporaries of coroutine expressions twice, or not at all, must not build this program: each expression below is
// one that some compiler got wrong. Constructions and destructions must balance, and no object may be destroyed that is not alive.

#include <gtest/gtest.h>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace helio::rt {
namespace {

namespace asio = boost::asio;
template <class T>
using Task = asio::awaitable<T>;

std::set<const void*> g_alive;
int g_wrong = 0;

/// Counts its own lives.
struct Counted {
  Counted() { born(); }
  explicit Counted(int v) : value(v) { born(); }
  Counted(const Counted& other) : value(other.value) { born(); }
  Counted(Counted&& other) noexcept : value(other.value) { born(); }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() {
    if (g_alive.erase(this) == 0) ++g_wrong;
  }
  void born() {
    if (!g_alive.insert(this).second) ++g_wrong;
  }
  int value = 0;
};

struct Agg {
  Counted a;
  std::string text;
};

Task<int> plain(int value) { co_return value; }
Task<bool> yes() { co_return true; }
Task<int> by_value(Agg agg) { co_return agg.a.value; }
Task<int> by_reference(const Agg& agg) { co_return agg.a.value; }
Task<int> by_array(std::array<Counted, 2> two) { co_return two[0].value + two[1].value; }
Task<int> by_function(std::function<int()> fn) { co_return fn(); }
template <class Fn>
Task<int> by_lambda(Fn fn) {
  co_return fn();
}
int both(const Agg& agg, int more) { return agg.a.value + more; }
struct Member {
  Task<int> take(Agg agg) { co_return agg.a.value + base; }
  int base = 1;
};

const std::string kLong(40, 'x');  // beyond the small string, so that a double destruction is a double free

Task<int> aggregate_by_value() { co_return co_await by_value(Agg{Counted(7), kLong}); }
Task<int> aggregate_by_reference() { co_return co_await by_reference(Agg{Counted(7), kLong}); }
Task<int> aggregate_designated() { co_return co_await by_value(Agg{.a = Counted(7), .text = kLong}); }
Task<int> aggregate_to_member() {
  Member member;
  co_return co_await member.take(Agg{Counted(6), kLong});
}
Task<int> array_temporary() { co_return co_await by_array(std::array<Counted, 2>{Counted(3), Counted(4)}); }
Task<int> lambda_temporary() {
  const Counted x(7);
  co_return co_await by_lambda([x] { return x.value; });
}
Task<int> lambda_in_function() {
  const Counted x(7);
  co_return co_await by_function([x] { return x.value; });
}
Task<int> lambda_coroutine() {
  const Counted x(7);
  co_return co_await [x]() -> Task<int> { co_return x.value; }();  // NOLINT: the expression under test
}
Task<int> spawned_lambda() {
  const auto executor = co_await asio::this_coro::executor;
  const Counted x(7);
  co_return co_await asio::co_spawn(executor, [x]() -> Task<int> { co_return x.value; }, asio::use_awaitable);  // NOLINT
}
Task<int> argument_beside_await() { co_return both(Agg{Counted(3), kLong}, co_await plain(4)); }
struct Pair {
  int a;
  int b;
};
Task<int> await_in_braces() {
  const Pair pair{co_await plain(3), co_await plain(4)};
  co_return pair.a + pair.b;
}
Task<int> await_in_if() {
  if (co_await yes()) co_return 7;
  co_return 0;
}
Task<int> await_in_conditional() { co_return co_await (co_await yes() ? plain(7) : plain(0)); }
Task<int> await_in_switch() {
  switch (co_await plain(1)) {
    case 1:
      co_return 7;
    default:
      co_return 0;
  }
}
Task<int> await_in_while(int value) {
  while (co_await plain(value) < 7) ++value;
  co_return value;
}
Task<std::pair<Counted, std::string>> make_pair() { co_return std::pair(Counted(7), kLong); }
Task<int> binding_of_await() {
  const auto [counted, text] = co_await make_pair();
  co_return text == kLong ? counted.value : 0;
}
Task<int> named_object() {
  Agg agg{Counted(7), kLong};
  co_return co_await by_value(std::move(agg));
}

struct Case {
  const char* name;
  Task<int> (*run)();
};

class CoroutineAbi : public ::testing::TestWithParam<Case> {};

TEST_P(CoroutineAbi, lives_balance) {
  g_alive.clear();
  g_wrong = 0;
  int result = 0;
  {
    asio::io_context context;
    asio::co_spawn(context, GetParam().run(), [&](std::exception_ptr failure, int value) {
      EXPECT_FALSE(failure);
      result = value;
    });
    context.run();
  }
  EXPECT_EQ(result, 7);
  EXPECT_EQ(g_wrong, 0);
  EXPECT_EQ(g_alive.size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Expressions, CoroutineAbi,
                         ::testing::Values(Case{"aggregate_by_value", aggregate_by_value},
                                           Case{"aggregate_by_reference", aggregate_by_reference},
                                           Case{"aggregate_designated", aggregate_designated},
                                           Case{"aggregate_to_member", aggregate_to_member}, Case{"array_temporary", array_temporary},
                                           Case{"lambda_temporary", lambda_temporary}, Case{"lambda_in_function", lambda_in_function},
                                           Case{"lambda_coroutine", lambda_coroutine}, Case{"spawned_lambda", spawned_lambda},
                                           Case{"argument_beside_await", argument_beside_await}, Case{"await_in_braces", await_in_braces},
                                           Case{"await_in_if", await_in_if}, Case{"await_in_conditional", await_in_conditional},
                                           Case{"await_in_switch", await_in_switch},
                                           Case{"await_in_while", [] { return await_in_while(5); }},
                                           Case{"binding_of_await", binding_of_await}, Case{"named_object", named_object}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace helio::rt
