// The line of the source at which a Python program is, from the stacks that `faulthandler`
// or py-spy write.
// Pure.
#ifndef HVD_LAUNCHER_STALL_VERDICT_PYTHON_SITE_H_
#define HVD_LAUNCHER_STALL_VERDICT_PYTHON_SITE_H_

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// A call on the stack of a Python thread.
struct PythonFrame {
  std::string_view file, line, function;
};
// Whether the file belongs to a library or to Python itself, and not to the user's script.
bool IsLibraryFile(std::string_view file);
// "file:line in function"
std::string FrameSite(const PythonFrame& frame);

// "file:line in function" of the main thread: its innermost frame outside of libraries, or its
// innermost one where it has no other. Empty when there is none.
std::string PythonSite(std::string_view stacks);

// The same out of what `py-spy dump --full-filenames` writes about the process; its main thread has
// the number of the process.
std::string PySpySite(std::string_view dump, int pid);
// The frames of the main thread there, the innermost one first: views into `dump`.
std::vector<PythonFrame> PySpyFrames(std::string_view dump, int pid);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_PYTHON_SITE_H_
