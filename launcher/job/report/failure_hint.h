// Advice for when a rank failed in a way that its command explains.
#ifndef HVD_LAUNCHER_JOB_REPORT_FAILURE_HINT_H_
#define HVD_LAUNCHER_JOB_REPORT_FAILURE_HINT_H_

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// The option with which the command's Python ignores PYTHONPATH, where hvdrun names its package
// ("-E", "-I" or both in one word, "-sE"); empty: none. `command` may begin with other programs
// (env, nice). Pure.
std::string IsolatingOption(const std::vector<std::string>& command);

// A line for the report on a failed rank, or "". `port_taken` says who has the port of MASTER_PORT;
// empty: no other process. Pure.
std::string FailureHint(const std::vector<std::string>& command, std::string_view last_stderr,
                        const std::string& port_taken = "");

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_FAILURE_HINT_H_
