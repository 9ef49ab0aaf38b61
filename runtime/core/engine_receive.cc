// What the peers tell.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/core/engine.h"

namespace hvd {

void Engine::Receive() {
  for (uint32_t peer = 0; peer < count_; ++peer) {
    if (peer == self_) continue;
    while (ReceiveNext(peer)) {
    }
  }
}

// False when there is nothing, or when the next message has to wait.
bool Engine::ReceiveNext(uint32_t peer) {
  Assembly& assembly = assemblies_[peer];
  if (assembly.complete()) {
    if (closed_.ok() && !TakeRequest(peer, assembly.bytes())) return false;
    assembly.Clear();
    return true;
  }
  const std::span<const std::byte> record = peers_.Peek(peer);
  if (record.empty()) return false;
  if (closed_.ok()) {
    const bool request =
        record.size() < sizeof(MessageHead) ||
        static_cast<MessageKind>(record[offsetof(MessageHead, kind)]) == MessageKind::kRequest;
    if (!(request ? TakeRequest(peer, record) : TakePiece(peer, record))) return false;
  }
  peers_.Consume(peer);
  return true;
}

bool Engine::TakePiece(uint32_t peer, std::span<const std::byte> record) {
  MessageHead head;
  std::memcpy(&head, record.data(), sizeof head);
  const std::span<const std::byte> payload = record.subspan(sizeof head);
  Status sound = InvalidArgument("a damaged request");
  if (head.kind == MessageKind::kAbort) {
    const Status ended = Aborted({reinterpret_cast<const char*>(payload.data()), payload.size()});
    backend_.Abort(ended);
    FailAll(ended);
    return true;
  }
  if (head.kind == MessageKind::kPiece) sound = assemblies_[peer].Add(head, payload);
  if (!sound.ok()) Damaged(peer, sound);
  return sound.ok();
}

void Engine::Damaged(uint32_t peer, const Status& what) {
  FailAll(Internal("rank " + std::to_string(WorldRank(peer)) + " sent " + what.message()));
}

// False when the request has to wait: the round before it, of the same name, is not over here, or
// the process set is not added here yet, or the peer has come out of a join that is not over here.
// Its sender is ahead of us, so all that we need for getting there is on its way.
bool Engine::TakeRequest(uint32_t peer, std::span<const std::byte> message) {
  if (joined_count_ != 0 && joined_[peer] != 0) return false;
  IncomingRequest request;
  Status sound = Read(message, &request);
  if (sound.ok() && !request.detail.empty() && !Define(peer, request, &sound)) return false;
  TensorName* name = nullptr;
  if (sound.ok() && !names_.OfPeer(peer, request.head.name_id, &name)) {
    sound = InvalidArgument("a request with an unknown number");
  }
  if (!sound.ok()) {
    Damaged(peer, sound);
    return false;
  }
  if (name == nullptr || name->set == nullptr)
    return true;  // of a set without us, or of one that is gone
  return Arrive(peer, name, request);
}

// Learns the detail of a name; false when the request has to wait.
bool Engine::Define(uint32_t peer, const IncomingRequest& request, Status* sound) {
  Detail detail;
  std::string_view text;
  *sound = DecodeDetail(request.detail, &detail, &text);
  if (!sound->ok()) return true;
  const int32_t domain = NameTable::DomainOf(detail.collective, detail.process_set);
  ProcessSet* set = domain < 0 ? &sets_.world() : sets_.Find(domain);
  if (set == nullptr) return false;
  if (!set->member) {
    *sound = names_.DefineExternal(peer, request.head.name_id);
    return true;
  }
  const uint32_t member = set->index_of_peer[peer];
  const bool splits_fit =
      detail.collective != Collective::kAlltoall ||
      (detail.parts.size() == 1 && detail.parts[0].splits.size() == set->group.size());
  if (member == ProcessSet::kNotHere || !splits_fit) {
    *sound = InvalidArgument("a request that does not fit its process set");
    return true;
  }
  TensorName* name = names_.Find(domain, text);
  // Its round needs the old detail.
  if (name != nullptr && name->here[member] != 0 && !Unsatisfiable(*name)) return false;
  if (name == nullptr) name = names_.Add(domain, set, text);
  *sound = names_.DefineOfPeer(peer, request.head.name_id, name);
  if (!sound->ok()) return true;
  name->details[member] = std::move(detail);
  name->agreed = false;
  return true;
}

bool Engine::Arrive(uint32_t peer, TensorName* name, const IncomingRequest& request) {
  const uint32_t member = MemberOf(*name, peer);
  const Detail& detail = name->details[member];
  if (request.head.more_descriptors + size_t{1} != std::max<size_t>(1, detail.parts.size())) {
    Damaged(peer, InvalidArgument("a request with too many or too few offers"));
    return false;
  }
  if (name->here[member] != 0) return Unsatisfiable(*name);  // never to be: nobody waits for it
  if (name->domain == NameTable::kJoinDomain && SetsAreChanging(peer)) return false;
  name->here[member] = 1;
  ++name->arrived;
  ReadDescriptors(request, &name->descriptors[member], &name->more_descriptors[member]);
  if (name->domain == NameTable::kJoinDomain) {
    NoteJoined(peer);
  } else if (Ready(*name)) {
    Start(name);
  } else {
    KeepPayloads(name, member);
    if (joined_[self_] != 0) DiscardIfOver(name);
  }
  return true;
}

void Engine::KeepPayloads(TensorName* name, uint32_t member) {
  BufferDescriptor& first = name->descriptors[member];
  std::vector<BufferDescriptor>& more = name->more_descriptors[member];
  const bool tiny = first.payload.data() == reinterpret_cast<const std::byte*>(first.words.data());
  size_t bytes = tiny ? 0 : first.payload.size();
  for (const BufferDescriptor& descriptor : more) bytes += descriptor.payload.size();
  if (bytes == 0) return;
  std::vector<std::byte>& inbox = name->inboxes[member];
  inbox.resize(bytes);
  std::byte* at = inbox.data();
  auto keep = [&at](BufferDescriptor* descriptor) {
    if (!descriptor->payload.empty())
      std::memcpy(at, descriptor->payload.data(), descriptor->payload.size());
    descriptor->payload = {at, descriptor->payload.size()};
    at += descriptor->payload.size();
  };
  if (!tiny) keep(&first);
  for (BufferDescriptor& descriptor : more) keep(&descriptor);
}

}  // namespace hvd
