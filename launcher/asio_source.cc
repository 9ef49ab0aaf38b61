// The one place where the functions of Asio are compiled (ASIO_SEPARATE_COMPILATION): in each file
// that used them, they took a second or two.
#include <asio/impl/src.hpp>
