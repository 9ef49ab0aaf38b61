// Why a word that was not found is no program at all, and what to type in its place. Pure.
#ifndef HVD_LAUNCHER_PROCESS_COMMAND_CURE_H_
#define HVD_LAUNCHER_PROCESS_COMMAND_CURE_H_

#include <string>
#include <vector>

namespace hvd {

// Follows "the command 'FOO=1' ": "sets a variable, which only a shell does; ...". Empty: it looks
// like the name of a program.
std::string WhyNoProgram(const std::vector<std::string>& argv);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_COMMAND_CURE_H_
