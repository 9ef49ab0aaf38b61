#include "runtime/core/outbox.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/request/message.h"
#include "runtime/core/request/request.h"

namespace hvd {

void Outbox::Announce(Operation* op) {
  if (unsent_.empty() && Write(op)) return;
  unsent_.push_back(op);
  peers_.Nudge();
}

Operation* Outbox::AnnounceNext() {
  if (unsent_.empty() || !Write(unsent_.front())) return nullptr;
  Operation* op = unsent_.front();
  unsent_.pop_front();
  return op;
}

// False when there is no room yet.
bool Outbox::Write(Operation* op) {
  if (!op->message.empty()) return WritePieces(op);
  TensorName& name = *op->name;
  names_.NumberOwn(&name);
  if (peers_.size() == 1) return op->sent = name.own_detail_known = true;
  std::string detail;
  if (!name.own_detail_known) detail = EncodeDetail(name.own_detail, name.text);
  std::vector<BufferDescriptor> more;
  for (size_t i = 1; i < op->parts.size(); ++i) more.push_back(op->parts[i].descriptor);
  const OutgoingRequest request{name.own_number, detail, &op->parts[0].descriptor, more};
  const size_t bytes = BytesOf(request);
  if (bytes > peers_.max_record()) {
    op->message.resize(bytes);
    hvd::Write(request, op->message);
    return WritePieces(op);
  }
  std::span<std::byte> record = peers_.Reserve(bytes);
  if (record.empty()) return false;
  hvd::Write(request, record);
  peers_.Commit();
  name.own_detail_known = true;
  return op->sent = true;
}

bool Outbox::WritePieces(Operation* op) {
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

void Outbox::SendAbortNotice(std::string reason) {
  if (peers_.size() == 1) return;
  abort_notice_ = std::move(reason);
  SendAbortNotice();
  if (!abort_notice_.empty()) peers_.Nudge();
}

void Outbox::WriteAbortNotice() {
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
