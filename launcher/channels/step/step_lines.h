// The lines that a step of many agents prints: each begins with "hvdrun-agent ID", printed by the
// script on the host (remote_script.h). Pure.
#ifndef HVD_LAUNCHER_CHANNELS_STEP_STEP_LINES_H_
#define HVD_LAUNCHER_CHANNELS_STEP_STEP_LINES_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

struct StepLine {
  std::string agent_job_id;
  std::string text;  // after the id; empty: the agent starts
};
// Without the line break; nothing for any other line.
std::optional<StepLine> ReadStepLine(std::string_view line);

// Splits a stream into lines. Drops lines longer than kLongest.
class StepLines {
 public:
  static constexpr size_t kLongest = 64 * 1024;

  void Add(std::string_view bytes) { held_ += bytes; }
  // The next whole line of an agent.
  std::optional<StepLine> Next();

 private:
  std::string held_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_STEP_STEP_LINES_H_
