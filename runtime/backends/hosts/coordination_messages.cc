#include "runtime/backends/hosts/coordination_messages.h"

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

void Put(ByteWriter& w, const ReadyMessage& msg) {
  w.Put(msg.ticket).Put(msg.domain);
  PutList(w, msg.ranks);
  w.Put(msg.collective).PutString(msg.name).PutString(msg.detail);
  PutList(w, msg.joined);
  w.Put(msg.fusion_key).Put(static_cast<uint32_t>(msg.parts.size()));
  for (const PartInfo& part : msg.parts) {
    w.Put(part.bytes);
    PutList(w, part.extents);
  }
  PutStatus(w, msg.failure);
}

ReadyMessage GetReady(ByteReader& r) {
  ReadyMessage msg;
  msg.ticket = r.Get<uint64_t>();
  msg.domain = r.Get<int32_t>();
  msg.ranks = GetList<uint32_t>(r);
  msg.collective = r.Get<Collective>();
  msg.name = r.GetString();
  msg.detail = r.GetString();
  msg.joined = GetList<uint32_t>(r);
  msg.fusion_key = r.Get<uint64_t>();
  const auto parts = r.Get<uint32_t>();
  for (uint32_t i = 0; i < parts && r.ok(); ++i) {
    PartInfo part;
    part.bytes = r.Get<uint64_t>();
    part.extents = GetList<int64_t>(r);
    msg.parts.push_back(std::move(part));
  }
  msg.failure = GetStatus(r);
  return msg;
}

void Put(ByteWriter& w, const WithdrawMessage& msg) { w.Put(msg.ticket).PutString(msg.why); }
void Put(ByteWriter& w, const JoinMessage& msg) { w.Put(msg.ticket).Put(msg.last_here); }
void Put(ByteWriter& w, const LeaveMessage& msg) { w.Put(msg.rank); }
void Put(ByteWriter& w, const DoneMessage& msg) { w.Put(msg.number); }

void Put(ByteWriter& w, const RunMessage& msg) {
  w.Put(msg.number);
  PutList(w, msg.leaders);
  PutList(w, msg.hosts);
  w.Put(static_cast<uint32_t>(msg.entries.size()));
  for (const RunEntry& entry : msg.entries) {
    w.Put(entry.ticket).Put(entry.participants).Put(static_cast<uint32_t>(entry.extents.size()));
    for (const std::vector<int64_t>& extents : entry.extents) PutList(w, extents);
  }
}

RunMessage GetRun(ByteReader& r) {
  RunMessage msg;
  msg.number = r.Get<uint64_t>();
  msg.leaders = GetList<uint32_t>(r);
  msg.hosts = GetList<uint32_t>(r);
  const auto entries = r.Get<uint32_t>();
  for (uint32_t i = 0; i < entries && r.ok(); ++i) {
    RunEntry entry;
    entry.ticket = r.Get<uint64_t>();
    entry.participants = r.Get<uint32_t>();
    const auto parts = r.Get<uint32_t>();
    for (uint32_t p = 0; p < parts && r.ok(); ++p) entry.extents.push_back(GetList<int64_t>(r));
    msg.entries.push_back(std::move(entry));
  }
  return msg;
}

void Put(ByteWriter& w, const EndMessage& msg) {
  w.Put(msg.ticket).Put(msg.last_joined);
  PutStatus(w, msg.status);
}

void Put(ByteWriter& w, const AbortNotice& msg) { w.PutString(msg.why); }

void Put(ByteWriter& w, const WaitMessage& msg) {
  w.Put(msg.ticket);
  PutList(w, msg.ranks);
}

Coordination GetWords(size_t kind, ByteReader& r) {
  switch (kind) {
    case 0: return GetReady(r);
    case 1: {
      const auto ticket = r.Get<uint64_t>();
      return WithdrawMessage{ticket, std::string(r.GetString())};
    }
    case 2: {
      const auto ticket = r.Get<uint64_t>();
      return JoinMessage{ticket, r.Get<uint32_t>()};
    }
    case 3: return LeaveMessage{r.Get<uint32_t>()};
    case 4: return DoneMessage{r.Get<uint64_t>()};
    case 5: return GetRun(r);
    case 6: {
      EndMessage msg;
      msg.ticket = r.Get<uint64_t>();
      msg.last_joined = r.Get<uint32_t>();
      msg.status = GetStatus(r);
      return msg;
    }
    case 7: return AbortNotice{std::string(r.GetString())};
    default: {
      const auto ticket = r.Get<uint64_t>();
      return WaitMessage{ticket, GetList<uint32_t>(r)};
    }
  }
}

}  // namespace

std::string EncodeCoordination(const Coordination& msg) {
  ByteWriter writer;
  writer.Put(static_cast<uint8_t>(msg.index()));
  std::visit([&](const auto& known) { Put(writer, known); }, msg);
  return writer.Take();
}

Result<Coordination> DecodeCoordination(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto kind = reader.Get<uint8_t>();
  if (!reader.ok() || kind >= std::variant_size_v<Coordination>) {
    return InvalidArgument("a message of an unknown kind");
  }
  Coordination msg = GetWords(kind, reader);
  if (!reader.AtEnd()) return InvalidArgument("a damaged message");
  return msg;
}

}  // namespace hvd
