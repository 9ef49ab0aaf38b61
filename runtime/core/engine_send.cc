// Telling the peers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/core/engine.h"

namespace hvd {

// Writes the request into the stream to the peers; false when there is no room yet.
bool Engine::Announce(Operation* op) {
  if (!op->message.empty()) return SendPieces(op);
  TensorName& name = *op->name;
  names_.NumberOwn(&name);
  if (count_ == 1) return op->sent = name.own_detail_known = true;
  std::string detail;
  if (!name.own_detail_known) detail = EncodeDetail(name.own_detail, name.text);
  std::vector<BufferDescriptor> more;
  for (size_t i = 1; i < op->parts.size(); ++i) more.push_back(op->parts[i].descriptor);
  const OutgoingRequest request{name.own_number, detail, &op->parts[0].descriptor, more};
  const size_t bytes = BytesOf(request);
  if (bytes > peers_.max_record()) {
    op->message.resize(bytes);
    Write(request, op->message);
    return SendPieces(op);
  }
  std::span<std::byte> record = peers_.Reserve(bytes);
  if (record.empty()) return false;
  Write(request, record);
  peers_.Commit();
  name.own_detail_known = true;
  return op->sent = true;
}

bool Engine::SendPieces(Operation* op) {
  const size_t room = peers_.max_record() - sizeof(MessageHead);
  while (op->message_sent < op->message.size()) {
    const size_t bytes = std::min(room, op->message.size() - op->message_sent);
    std::span<std::byte> record = peers_.Reserve(sizeof(MessageHead) + bytes);
    if (record.empty()) return false;
    MessageHead head{};
    head.kind = MessageKind::kPiece;
    head.payload_bytes = static_cast<uint32_t>(bytes);
    head.words[0] = op->message.size();
    head.words[1] = op->message_sent;
    std::memcpy(record.data(), &head, sizeof head);
    std::memcpy(record.data() + sizeof head, op->message.data() + op->message_sent, bytes);
    peers_.Commit();
    op->message_sent += bytes;
  }
  op->message = {};
  return op->sent = op->name->own_detail_known = true;
}

void Engine::AnnounceUnsent() {
  while (!unsent_.empty() && Announce(unsent_.front())) {
    TensorName* name = unsent_.front()->name;
    unsent_.pop_front();
    if (Ready(*name)) Start(name);
  }
}

// This rank cannot go on in a way that the others could find out by themselves.
void Engine::EndWorld(std::string sentence) {
  LogError(sentence);
  if (options_.tell_ending) options_.tell_ending(sentence);
  if (count_ > 1) abort_notice_ = sentence;
  backend_.Abort(Aborted(sentence));
  FailAll(Aborted(std::move(sentence)));
  if (!abort_notice_.empty()) SendAbortNotice();
  if (!abort_notice_.empty()) peers_.Nudge();
}

void Engine::SendAbortNotice() {
  const size_t bytes = std::min(abort_notice_.size(), peers_.max_record() - sizeof(MessageHead));
  std::span<std::byte> record = peers_.Reserve(sizeof(MessageHead) + bytes);
  if (record.empty()) return;
  MessageHead head{};
  head.kind = MessageKind::kAbort;
  head.payload_bytes = static_cast<uint32_t>(bytes);
  std::memcpy(record.data(), &head, sizeof head);
  std::memcpy(record.data() + sizeof head, abort_notice_.data(), bytes);
  peers_.Commit();
  abort_notice_.clear();
}

}  // namespace hvd
