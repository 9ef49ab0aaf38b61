// The only file that compiles the functions of Asio (ASIO_SEPARATE_COMPILATION): in each file that
// uses them, they would take a second or two.
#include <asio/impl/src.hpp>
