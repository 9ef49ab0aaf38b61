#include "runtime/backends/cuda/host_note.h"

#include "runtime/net/fields.h"

namespace hvd {

void Fields(auto& f, MaybeConst<HostNote> auto& note) {
  f(note.refuses, note.nccl_version, note.compute_capability, note.places, note.why);
}

std::string EncodeHostNote(const HostNote& note) {
  FieldWriter writer;
  Fields(writer, note);
  return writer.Take();
}

Result<HostNote> DecodeHostNote(std::string_view bytes) {
  FieldReader reader(bytes);
  HostNote note;
  Fields(reader, note);
  if (!reader.AtEnd()) return Internal("what another host says of its GPUs has a wrong length");
  return note;
}

}  // namespace hvd
