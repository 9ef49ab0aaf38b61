#include "launcher/channels/bundle/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/text/hex_text.h"

namespace hvd {
namespace {

// `count` bytes at `offset`, if they are all there.
std::optional<std::string_view> Part(std::string_view bytes, uint64_t offset, uint64_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return std::nullopt;
  return bytes.substr(offset, count);
}

template <typename T>
std::optional<T> At(std::string_view bytes, uint64_t offset) {
  std::optional<std::string_view> part = Part(bytes, offset, sizeof(T));
  if (!part) return std::nullopt;
  T value;
  std::memcpy(&value, part->data(), sizeof value);
  return value;
}

constexpr uint64_t Padded(uint64_t size) { return (size + 3) & ~uint64_t{3}; }

// In a segment of notes; empty when there is none.
std::string BuildIdIn(std::string_view notes) {
  constexpr std::string_view kOwner("GNU\0", 4);
  while (std::optional<Elf64_Nhdr> note = At<Elf64_Nhdr>(notes, 0)) {
    const uint64_t text_at = sizeof *note + Padded(note->n_namesz);
    std::optional<std::string_view> owner = Part(notes, sizeof *note, note->n_namesz);
    std::optional<std::string_view> text = Part(notes, text_at, note->n_descsz);
    if (!owner || !text) return "";
    if (note->n_type == NT_GNU_BUILD_ID && *owner == kOwner) return HexOf(*text);
    notes.remove_prefix(std::min<uint64_t>(notes.size(), text_at + Padded(note->n_descsz)));
  }
  return "";
}

}  // namespace

Result<std::string> ElfBuildId(std::string_view bytes) {
  std::optional<Elf64_Ehdr> header = At<Elf64_Ehdr>(bytes, 0);
  if (!header || !bytes.starts_with(std::string_view(ELFMAG, SELFMAG)) ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
      header->e_phnum == 0) {
    return InvalidArgument("it is no program of 64 bits");
  }
  std::string build_id;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    std::optional<Elf64_Phdr> segment =
        At<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || !Part(bytes, segment->p_offset, segment->p_filesz))
      return InvalidArgument("it is cut off");
    if (segment->p_type == PT_NOTE && build_id.empty())
      build_id = BuildIdIn(bytes.substr(segment->p_offset, segment->p_filesz));
  }
  return build_id;
}

}  // namespace hvd
