set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)

# g++ before 13 destroys temporaries of coroutines twice (docs/adr/0002-clang.md), so it may check the code but not build it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} miscompiles coroutines; use clang++-19 (cmake --preset release)")
endif()

find_program(HELIO_CCACHE ccache)
if(HELIO_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=5G
    CCACHE_PREFIX=${CMAKE_SOURCE_DIR}/tools/measure_unit.py ${HELIO_CCACHE})
endif()
find_program(HELIO_LLD NAMES ld.lld-19 ld.lld)
if(HELIO_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=${HELIO_LLD})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual -Wimplicit-fallthrough
  -Werror -Wno-error=deprecated-declarations -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-missing-field-initializers -Wno-gnu-zero-variadic-macro-arguments -Wno-missing-designated-field-initializers)
endif()
add_link_options(-static-libstdc++ -Wl,--gc-sections)

set(HELIO_SANITIZE "" CACHE STRING "sanitizers, comma separated")
if(HELIO_SANITIZE)
  add_compile_options(-fsanitize=${HELIO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HELIO_SANITIZE})
endif()
option(HELIO_FUZZ "build the fuzzers, and everything so that they see which code an input reaches" OFF)
if(HELIO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
