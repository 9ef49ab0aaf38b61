// Reports of ranks to the launcher about a failing generation: entries of its directory
// (kv_store.h) that the driver reads and no rank asks for. PROTOCOL.md, section 2. Pure.
#ifndef HVD_RUNTIME_NET_TROUBLE_H_
#define HVD_RUNTIME_NET_TROUBLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hvd {

// `rank` has had no answer to its probes from the host of `peer` for this long; 0: it answers
// again.
struct RankSilent {
  uint32_t rank = 0, peer = 0;
  uint32_t silent_ms = 0;
  bool operator==(const RankSilent&) const = default;
};
// `rank` ends the generation for a reason invisible to agents. `stalled`: a collective exceeded the
// user's limit.
struct RankEnding {
  uint32_t rank = 0;
  std::string reason;
  bool stalled = false;
  bool operator==(const RankEnding&) const = default;
};
// When the generation broke this rank was stopped by a signal. Reported by its agent.
struct RankStopped {
  uint32_t rank = 0;
  bool operator==(const RankStopped&) const = default;
};
using Trouble = std::variant<RankSilent, RankEnding, RankStopped>;

struct TroubleEntry {
  std::string key, value;
};

// A key is put once: `number` distinguishes several silences of one rank.
TroubleEntry EncodeTrouble(const Trouble& trouble, uint32_t number = 0);
// Nothing for other or damaged entries of the directory.
std::optional<Trouble> DecodeTrouble(std::string_view key, std::string_view value);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_TROUBLE_H_
