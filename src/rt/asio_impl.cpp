// The compiled half of Asio (BOOST_ASIO_SEPARATE_COMPILATION): once per program.
#include <boost/asio/impl/src.hpp>
