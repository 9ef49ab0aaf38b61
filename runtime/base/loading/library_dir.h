// Libraries loaded on demand: their directory, which is that of the object this is linked into, and
// the error of a failed load.
#ifndef HVD_RUNTIME_BASE_LOADING_LIBRARY_DIR_H_
#define HVD_RUNTIME_BASE_LOADING_LIBRARY_DIR_H_

#include <string>

namespace hvd {

// The folder of libhvd.so or of the program that has this built in; "." if unknown. Any thread.
std::string LibraryDir();
// The path of a library in that folder, or in `folder` unless that is empty.
std::string LibraryPath(const std::string& library, const std::string& folder = "");

// The dlerror() text of this thread's last failed dlopen; never empty.
std::string LoaderError();

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_LOADING_LIBRARY_DIR_H_
