// The current source line of a Python program, from the stacks that `faulthandler` or py-spy print.
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

// "file:line in function" of the main thread: its innermost frame outside of libraries, else its
// innermost frame. Empty: no frames.
std::string PythonSite(std::string_view stacks);

// The same from the output of `py-spy dump --full-filenames`; the main thread's id is `pid`.
std::string PySpySite(std::string_view dump, int pid);
// The frames of the main thread in that output, innermost first: views into `dump`.
std::vector<PythonFrame> PySpyFrames(std::string_view dump, int pid);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_PYTHON_SITE_H_
