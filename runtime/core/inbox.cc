#include "runtime/core/inbox.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

bool IsRequest(std::span<const std::byte> record) {
  return record.size() < sizeof(MessageHead) ||  // which Read refuses
         static_cast<MessageKind>(record[offsetof(MessageHead, kind)]) == MessageKind::kRequest;
}

}  // namespace

Inbox::Arrival Inbox::Next(uint32_t peer) {
  Arrival arrival;
  for (;;) {
    switch (ReadNext(peer, &arrival)) {
      case Reading::kWait: return arrival;
      case Reading::kIgnore: Consume(peer); break;
      case Reading::kPiece: peers_.Consume(peer); break;
      case Reading::kAnnounced: arrival.event = Event::kAnnounced; return arrival;
      case Reading::kFailed: arrival.event = Event::kFailed; return arrival;
    }
  }
}

Inbox::Reading Inbox::ReadNext(uint32_t peer, Arrival* arrival) {
  const Assembly& assembly = assemblies_[peer];
  if (assembly.complete()) return ReadRequest(peer, assembly.bytes(), arrival);
  const std::span<const std::byte> record = peers_.Peek(peer);
  if (record.empty()) return Reading::kWait;
  return IsRequest(record) ? ReadRequest(peer, record, arrival) : ReadPiece(peer, record);
}

void Inbox::Consume(uint32_t peer) {
  if (assemblies_[peer].complete()) {
    assemblies_[peer].Clear();
  } else {
    peers_.Consume(peer);
  }
}

Inbox::NextMessage Inbox::PeekFor(uint32_t peer, const TensorName& name, size_t payload_bytes,
                                  std::span<const std::byte>* payload) {
  if (assemblies_[peer].complete()) return NextMessage::kOther;
  const std::span<const std::byte> record = peers_.Peek(peer);
  if (record.empty()) return NextMessage::kNothing;
  const bool expected = IsPayloadOnly(record, payload_bytes, payload) &&
                        names_.IsOfPeer(peer, NumberIn(record), name);
  return expected ? NextMessage::kExpected : NextMessage::kOther;
}

void Inbox::Drain(uint32_t peer) {
  while (!empty(peer)) Consume(peer);
}

bool Inbox::empty(uint32_t peer) {
  return !assemblies_[peer].complete() && peers_.Peek(peer).empty();
}

Inbox::Reading Inbox::ReadPiece(uint32_t peer, std::span<const std::byte> record) {
  MessageHead head;
  std::memcpy(&head, record.data(), sizeof head);
  const std::span<const std::byte> payload = record.subspan(sizeof head);
  if (head.kind == MessageKind::kAbort) {
    failure_ = Aborted({reinterpret_cast<const char*>(payload.data()), payload.size()});
    return Reading::kFailed;
  }
  Status sound = InvalidArgument("a damaged request");
  if (head.kind == MessageKind::kPiece) sound = assemblies_[peer].Add(head, payload);
  return sound.ok() ? Reading::kPiece : Damaged(peer, sound);
}

Inbox::Reading Inbox::Damaged(uint32_t peer, const Status& what) {
  failure_ =
      Internal(Format("rank {} sent {}", sets_.world().rank_of_member(peer), what.message()));
  return Reading::kFailed;
}

// kWait if the previous round of this name is not over on this rank, if the process set is not
// added here yet, or if the peer has left a join that is not over here. In each case the peer is
// ahead of this rank, so everything that this rank needs is in flight.
Inbox::Reading Inbox::ReadRequest(uint32_t peer, std::span<const std::byte> message,
                                  Arrival* arrival) {
  if (joins_.any() && joins_.Has(peer)) return Reading::kWait;
  IncomingRequest request;
  if (Status sound = Read(message, &request); !sound.ok()) return Damaged(peer, sound);
  if (!request.detail.empty()) {
    const Reading defined = Define(peer, request);
    if (defined != Reading::kAnnounced) return defined;
  }
  arrival->name = nullptr;
  if (!names_.OfPeer(peer, request.head.name_id, &arrival->name)) {
    return Damaged(peer, InvalidArgument("a request with an unknown number"));
  }
  const TensorName* name = arrival->name;
  // Of a process set that this rank is not a member of, or that was removed.
  if (name == nullptr || name->set == nullptr) return Reading::kIgnore;
  return Enter(peer, request, arrival);
}

// Stores the detail of a name; kAnnounced when the request can be entered.
Inbox::Reading Inbox::Define(uint32_t peer, const IncomingRequest& request) {
  Detail detail;
  std::string_view text;
  if (Status sound = DecodeDetail(request.detail, &detail, &text); !sound.ok()) {
    return Damaged(peer, sound);
  }
  const uint32_t number = request.head.name_id;
  const int32_t domain = NameTable::DomainOf(detail.collective, detail.process_set);
  ProcessSet* set = domain < 0 ? &sets_.world() : sets_.Find(domain);
  if (set == nullptr) return Reading::kWait;
  if (!set->member) {
    Status defined = names_.DefineExternal(peer, number);
    return defined.ok() ? Reading::kAnnounced : Damaged(peer, defined);
  }
  const uint32_t member = set->index_of_peer[peer];
  const bool splits_fit =
      detail.collective != Collective::kAlltoall ||
      (detail.parts.size() == 1 && detail.parts[0].splits.size() == set->group.size());
  if (member == ProcessSet::kNotHere || !splits_fit) {
    return Damaged(peer, InvalidArgument("a request that does not fit its process set"));
  }
  TensorName* name = names_.Find(domain, text);
  // The current round still needs the former detail.
  if (name != nullptr && name->here[member] != 0 && !rounds_.Unsatisfiable(*name)) {
    return Reading::kWait;
  }
  if (name == nullptr) name = names_.Add(domain, set, text);
  if (Status defined = names_.DefineOfPeer(peer, number, name); !defined.ok()) {
    return Damaged(peer, defined);
  }
  name->details[member] = std::move(detail);
  name->agreed = false;
  name->express = TensorName::Express::kUnknown;
  return Reading::kAnnounced;
}

Inbox::Reading Inbox::Enter(uint32_t peer, const IncomingRequest& request, Arrival* arrival) {
  TensorName* name = arrival->name;
  const uint32_t member = arrival->member = name->member_of(peer);
  const Detail& detail = name->details[member];
  if (request.head.more_descriptors + size_t{1} != std::max<size_t>(1, detail.parts.size())) {
    return Damaged(peer, InvalidArgument("a request with too many or too few offers"));
  }
  if (name->here[member] != 0) {
    // Prevents ranks from waiting for a round that can never be complete.
    return rounds_.Unsatisfiable(*name) ? Reading::kIgnore : Reading::kWait;
  }
  if (name->domain == NameTable::kJoinDomain && rounds_.SetsAreChanging(peer)) {
    return Reading::kWait;
  }
  name->here[member] = 1;
  ++name->arrived;
  ReadDescriptors(request, &name->descriptors[member], &name->more_descriptors[member]);
  return Reading::kAnnounced;
}

void Inbox::KeepPayloads(TensorName* name, uint32_t member) {
  BufferDescriptor& first = name->descriptors[member];
  RecordVector<BufferDescriptor>& more = name->more_descriptors[member];
  const bool tiny = first.payload.data() == reinterpret_cast<const std::byte*>(first.words.data());
  size_t bytes = tiny ? 0 : first.payload.size();
  for (const BufferDescriptor& descriptor : more) bytes += descriptor.payload.size();
  if (bytes == 0) return;
  RecordVector<std::byte>& kept = name->inboxes[member];
  kept.resize(bytes);
  std::byte* at = kept.data();
  auto keep = [&at](BufferDescriptor* descriptor) {
    if (!descriptor->payload.empty()) {
      std::memcpy(at, descriptor->payload.data(), descriptor->payload.size());
    }
    descriptor->payload = {at, descriptor->payload.size()};
    at += descriptor->payload.size();
  };
  if (!tiny) keep(&first);
  for (BufferDescriptor& descriptor : more) keep(&descriptor);
}

}  // namespace hvd
