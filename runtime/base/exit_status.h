// hvdrun's own exit codes; any other is a rank's. configs/failure_codes.cc explains them to users;
// the manual page and docs/failure-codes.md are generated from it.
#ifndef HVD_RUNTIME_BASE_EXIT_STATUS_H_
#define HVD_RUNTIME_BASE_EXIT_STATUS_H_

namespace hvd {

inline constexpr int kFailedExitCode = 1;
inline constexpr int kUsageError = 2;
// hvdrun and its ranks were asked to stop after a step; run the job again (EX_TEMPFAIL of
// sysexits.h).
inline constexpr int kStoppedExitCode = 75;
// A collective took too long or could never complete. Not used by shells or signals.
inline constexpr int kStalledExitCode = 79;
inline constexpr int kTimedOutExitCode = 124;  // as timeout(1)
// As in shells.
inline constexpr int kCommandNotExecutable = 126;
inline constexpr int kCommandNotFound = 127;
// Signal N is reported as exit code 128 + N, by shells and by the warden of an agent.
inline constexpr int kSignalBase = 128;

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_EXIT_STATUS_H_
