#include "runtime/backends/cuda/host_note.h"

#include "runtime/net/fields.h"

namespace hvd {

void Fields(auto& f, MaybeConst<HostNote> auto& note) {
  f(note.refuses, note.nccl_version, note.compute_capability, note.places, note.why);
}

std::string EncodeHostNote(const HostNote& note) { return EncodeFields(note); }

Result<HostNote> DecodeHostNote(std::string_view bytes) {
  std::optional<HostNote> note = DecodeFields<HostNote>(bytes);
  if (!note) return Internal("what another host says of its GPUs has a wrong length");
  return std::move(*note);
}

}  // namespace hvd
