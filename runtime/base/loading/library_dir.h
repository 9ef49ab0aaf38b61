// Libraries that are loaded when needed: where they lie, which is beside the object that this is
// linked into, and why one did not load.
#ifndef HVD_RUNTIME_BASE_LOADING_LIBRARY_DIR_H_
#define HVD_RUNTIME_BASE_LOADING_LIBRARY_DIR_H_

#include <string>

namespace hvd {

// The folder of libhvd.so, or of a program that has this built in; "." when it cannot be told. Any
// thread.
std::string LibraryDir();
// The path of a library there, or in `folder` unless that is empty.
std::string LibraryPath(const std::string& library, const std::string& folder = "");

// The loader's words for the last dlopen of this thread that failed; never empty.
std::string LoaderError();

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_LOADING_LIBRARY_DIR_H_
