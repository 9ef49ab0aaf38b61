// The exit codes that hvdrun gives itself; any other is that of a rank. configs/failure_codes.cc
// explains them to users, and the manual page and docs/failure-codes.md are made from it.
#ifndef HVD_RUNTIME_BASE_EXIT_STATUS_H_
#define HVD_RUNTIME_BASE_EXIT_STATUS_H_

namespace hvd {

inline constexpr int kFailedExitCode = 1;
inline constexpr int kUsageError = 2;
// hvdrun and its ranks were asked to stop after a step: run me again (EX_TEMPFAIL of sysexits.h).
inline constexpr int kStoppedExitCode = 75;
// A collective took too long, or could never end. No shell and no signal gives it.
inline constexpr int kStalledExitCode = 79;
inline constexpr int kTimedOutExitCode = 124;  // as timeout(1)
// As a shell.
inline constexpr int kCommandNotExecutable = 126;
inline constexpr int kCommandNotFound = 127;
// A shell reports signal N by exit code 128 + N, and so does the warden of an agent.
inline constexpr int kSignalBase = 128;

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_EXIT_STATUS_H_
