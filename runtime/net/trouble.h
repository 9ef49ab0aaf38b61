// The reports of ranks to the launcher about a generation that is in trouble: entries of its
// directory (kv_store.h) that the driver reads and that no rank asks for. PROTOCOL.md, section 2.
// Pure.
#ifndef HVD_RUNTIME_NET_TROUBLE_H_
#define HVD_RUNTIME_NET_TROUBLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hvd {

// `rank` hears nothing of the host of `peer`, though it asks, for so long; 0: it is heard again.
struct RankSilent {
  uint32_t rank = 0, peer = 0;
  uint32_t silent_ms = 0;
  bool operator==(const RankSilent&) const = default;
};
// `rank` ends the generation for a reason that no agent can see. `stalled`: a collective took
// longer than the user's limit.
struct RankEnding {
  uint32_t rank = 0;
  std::string reason;
  bool stalled = false;
  bool operator==(const RankEnding&) const = default;
};
// When the generation broke this rank did not run: a signal had stopped it. Its agent says so.
struct RankStopped {
  uint32_t rank = 0;
  bool operator==(const RankStopped&) const = default;
};
using Trouble = std::variant<RankSilent, RankEnding, RankStopped>;

struct TroubleEntry {
  std::string key, value;
};

// A key is put once: `number` tells the silences of one rank from each other.
TroubleEntry EncodeTrouble(const Trouble& trouble, uint32_t number = 0);
// Nothing for the other entries of the directory, and for damaged ones.
std::optional<Trouble> DecodeTrouble(std::string_view key, std::string_view value);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_TROUBLE_H_
