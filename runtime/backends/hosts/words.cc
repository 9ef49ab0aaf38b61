#include "runtime/backends/hosts/words.h"

#include <utility>

#include "runtime/base/bytes.h"

namespace hvd {
namespace {

template <typename T>
void PutList(ByteWriter& writer, const std::vector<T>& list) {
  writer.Put(static_cast<uint32_t>(list.size()));
  for (T item : list) writer.Put(item);
}

// A list cannot be longer than the message that holds it, so a damaged length takes no memory.
template <typename T>
std::vector<T> GetList(ByteReader& reader) {
  const auto count = reader.Get<uint32_t>();
  ByteReader items(reader.GetBytes(size_t{count} * sizeof(T)));
  std::vector<T> list;
  if (!reader.ok()) return list;
  list.reserve(count);
  for (uint32_t i = 0; i < count; ++i) list.push_back(items.Get<T>());
  return list;
}

void PutStatus(ByteWriter& writer, const Status& status) {
  writer.Put(static_cast<uint8_t>(status.code())).PutString(status.message());
}

Status GetStatus(ByteReader& reader) {
  const auto code = reader.Get<uint8_t>();
  std::string_view message = reader.GetString();
  if (code == 0) return Status::Ok();
  const bool known = code <= static_cast<uint8_t>(Code::kInternal);
  return {known ? static_cast<Code>(code) : Code::kInternal, std::string(message)};
}

void Put(ByteWriter& w, const ReadyWords& words) {
  w.Put(words.ticket).Put(words.domain);
  PutList(w, words.ranks);
  w.Put(words.collective).PutString(words.name).PutString(words.detail);
  PutList(w, words.joined);
  w.Put(words.fusion_key).Put(static_cast<uint32_t>(words.parts.size()));
  for (const PartWords& part : words.parts) {
    w.Put(part.bytes);
    PutList(w, part.extents);
  }
  PutStatus(w, words.failure);
}

ReadyWords GetReady(ByteReader& r) {
  ReadyWords words;
  words.ticket = r.Get<uint64_t>();
  words.domain = r.Get<int32_t>();
  words.ranks = GetList<uint32_t>(r);
  words.collective = r.Get<Collective>();
  words.name = r.GetString();
  words.detail = r.GetString();
  words.joined = GetList<uint32_t>(r);
  words.fusion_key = r.Get<uint64_t>();
  const auto parts = r.Get<uint32_t>();
  for (uint32_t i = 0; i < parts && r.ok(); ++i) {
    PartWords part;
    part.bytes = r.Get<uint64_t>();
    part.extents = GetList<int64_t>(r);
    words.parts.push_back(std::move(part));
  }
  words.failure = GetStatus(r);
  return words;
}

void Put(ByteWriter& w, const WithdrawWords& words) { w.Put(words.ticket).PutString(words.why); }
void Put(ByteWriter& w, const JoinWords& words) { w.Put(words.ticket).Put(words.last_here); }
void Put(ByteWriter& w, const LeaveWords& words) { w.Put(words.rank); }
void Put(ByteWriter& w, const DoneWords& words) { w.Put(words.number); }

void Put(ByteWriter& w, const RunWords& words) {
  w.Put(words.number);
  PutList(w, words.leaders);
  PutList(w, words.hosts);
  w.Put(static_cast<uint32_t>(words.entries.size()));
  for (const RunEntry& entry : words.entries) {
    w.Put(entry.ticket).Put(entry.participants).Put(static_cast<uint32_t>(entry.extents.size()));
    for (const std::vector<int64_t>& extents : entry.extents) PutList(w, extents);
  }
}

RunWords GetRun(ByteReader& r) {
  RunWords words;
  words.number = r.Get<uint64_t>();
  words.leaders = GetList<uint32_t>(r);
  words.hosts = GetList<uint32_t>(r);
  const auto entries = r.Get<uint32_t>();
  for (uint32_t i = 0; i < entries && r.ok(); ++i) {
    RunEntry entry;
    entry.ticket = r.Get<uint64_t>();
    entry.participants = r.Get<uint32_t>();
    const auto parts = r.Get<uint32_t>();
    for (uint32_t p = 0; p < parts && r.ok(); ++p) entry.extents.push_back(GetList<int64_t>(r));
    words.entries.push_back(std::move(entry));
  }
  return words;
}

void Put(ByteWriter& w, const EndWords& words) {
  w.Put(words.ticket).Put(words.last_joined);
  PutStatus(w, words.status);
}

void Put(ByteWriter& w, const FarewellWords& words) { w.PutString(words.why); }

void Put(ByteWriter& w, const WaitWords& words) {
  w.Put(words.ticket);
  PutList(w, words.ranks);
}

Words GetWords(size_t kind, ByteReader& r) {
  switch (kind) {
    case 0: return GetReady(r);
    case 1: {
      const auto ticket = r.Get<uint64_t>();
      return WithdrawWords{ticket, std::string(r.GetString())};
    }
    case 2: {
      const auto ticket = r.Get<uint64_t>();
      return JoinWords{ticket, r.Get<uint32_t>()};
    }
    case 3: return LeaveWords{r.Get<uint32_t>()};
    case 4: return DoneWords{r.Get<uint64_t>()};
    case 5: return GetRun(r);
    case 6: {
      EndWords words;
      words.ticket = r.Get<uint64_t>();
      words.last_joined = r.Get<uint32_t>();
      words.status = GetStatus(r);
      return words;
    }
    case 7: return FarewellWords{std::string(r.GetString())};
    default: {
      const auto ticket = r.Get<uint64_t>();
      return WaitWords{ticket, GetList<uint32_t>(r)};
    }
  }
}

}  // namespace

std::string EncodeWords(const Words& words) {
  ByteWriter writer;
  writer.Put(static_cast<uint8_t>(words.index()));
  std::visit([&](const auto& known) { Put(writer, known); }, words);
  return writer.Take();
}

Result<Words> DecodeWords(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto kind = reader.Get<uint8_t>();
  if (!reader.ok() || kind >= std::variant_size_v<Words>) {
    return InvalidArgument("a message of an unknown kind");
  }
  Words words = GetWords(kind, reader);
  if (!reader.AtEnd()) return InvalidArgument("a damaged message");
  return words;
}

}  // namespace hvd
