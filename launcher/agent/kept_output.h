// KeptOutput: output of workers that hvdrun may not have printed yet, kept by the agent for a
// driver that takes over. Positions in a worker's stream are in bytes since it started. Pure.
#ifndef HVD_LAUNCHER_AGENT_KEPT_OUTPUT_H_
#define HVD_LAUNCHER_AGENT_KEPT_OUTPUT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/wire/messages.h"

namespace hvd {

class KeptOutput {
 public:
  // Call before the first Add; otherwise nothing is kept.
  void Enable() { enabled_ = true; }

  // The two pieces follow each other.
  void Add(uint32_t rank, OutputStream stream, std::string_view first, std::string_view second);
  // Output up to there has been printed. A smaller position than before changes nothing.
  void NotePrinted(const OutputPrinted& printed);
  // Everything that was not printed, in order of arrival.
  void ForEach(const std::function<void(uint32_t rank, OutputStream stream,
                                        std::string_view bytes)>& take) const;
  // Bytes that are kept, also those that wait for older ones to be printed.
  size_t bytes() const { return bytes_; }

 private:
  using Writer = std::pair<uint32_t, OutputStream>;
  struct Piece {
    Writer writer;
    uint64_t begin = 0;
    std::string bytes;
  };
  struct Place {
    uint64_t end = 0, printed = 0;
  };

  bool enabled_ = false;
  std::deque<Piece> pieces_;
  std::map<Writer, Place> places_;
  size_t bytes_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_KEPT_OUTPUT_H_
