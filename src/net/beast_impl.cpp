// The compiled half of Beast (BOOST_BEAST_SEPARATE_COMPILATION): once per program.
#include <boost/beast/src.hpp>
