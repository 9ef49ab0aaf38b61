// Where the libraries that are loaded when needed lie: beside the object that this is linked into.
#ifndef HVD_RUNTIME_BASE_LIBRARY_DIR_H_
#define HVD_RUNTIME_BASE_LIBRARY_DIR_H_

#include <string>

namespace hvd {

// The folder of libhvd.so, or of a program that has this built in; "." when it cannot be told. Any
// thread.
std::string LibraryDir();

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_LIBRARY_DIR_H_
