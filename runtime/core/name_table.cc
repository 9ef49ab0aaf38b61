#include "runtime/core/name_table.h"

#include <utility>

namespace hvd {
namespace {

constexpr uint32_t kNumbers = 4096;

}  // namespace

TensorName* NameTable::Find(std::string_view text) const {
  auto found = names_.find(text);
  return found == names_.end() ? nullptr : found->second.get();
}

TensorName* NameTable::FindOrAdd(std::string_view text) {
  if (TensorName* known = Find(text)) return known;
  auto name = std::make_unique<TensorName>();
  name->text = text;
  name->here.assign(ranks_, 0);
  name->details.resize(ranks_);
  name->offers.resize(ranks_);
  name->inboxes.resize(ranks_);
  TensorName* added = name.get();
  names_.emplace(added->text, std::move(name));
  return added;
}

// Peers hear of a redefined number in order, so a name whose announcement was sent no longer needs its number.
void NameTable::NumberOwn(TensorName* name) {
  if (name->own_number != TensorName::kNoNumber) return;
  name->own_detail_known = false;
  name->own_number = next_own_number_++ % kNumbers;
  ++name->references;
  if (own_numbers_.size() < kNumbers) {
    own_numbers_.push_back(name);
    return;
  }
  TensorName* former = std::exchange(own_numbers_[name->own_number], name);
  former->own_number = TensorName::kNoNumber;
  DropReference(former);
}

Status NameTable::DefineOfPeer(uint32_t peer, uint32_t number, std::string_view text,
                               Detail detail) {
  if (number >= kNumbers) return InvalidArgument("a request with a number out of range");
  std::vector<TensorName*>& numbers = peer_numbers_[peer];
  if (number >= numbers.size()) numbers.resize(number + 1, nullptr);
  TensorName* name = FindOrAdd(text);
  name->details[peer] = std::move(detail);
  name->agreed = false;
  TensorName* former = std::exchange(numbers[number], name);
  if (former == name) return Status::Ok();
  ++name->references;
  if (former != nullptr) DropReference(former);
  return Status::Ok();
}

TensorName* NameTable::OfPeer(uint32_t peer, uint32_t number) const {
  const std::vector<TensorName*>& numbers = peer_numbers_[peer];
  return number < numbers.size() ? numbers[number] : nullptr;
}

void NameTable::DropReference(TensorName* name) {
  --name->references;
  ForgetIfUnused(name);
}

void NameTable::ForgetIfUnused(TensorName* name) {
  if (name->references == 0 && name->operation == nullptr && name->arrived == 0) {
    names_.erase(name->text);
  }
}

}  // namespace hvd
