#include "runtime/core/state/name_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hvd {
namespace {

constexpr uint32_t kNumbers = 4096;

bool IsUnused(const TensorName& name) {
  return name.references == 0 && name.operation == nullptr && !name.kept && name.arrived == 0;
}

}  // namespace

// Eight bytes at a time, the last ones twice if necessary: every call looks up a name.
size_t NameTable::Hash::operator()(const Key& key) const {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  constexpr size_t kWord = sizeof(uint64_t);
  const std::string_view text = key.text;
  uint64_t hash = (text.size() ^ static_cast<uint64_t>(key.domain) << 32) * kMultiplier;
  auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  auto word_at = [text](size_t at) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, kWord);
    return word;
  };
  if (text.size() < kWord) {
    for (char c : text) add(static_cast<unsigned char>(c));
    return hash;
  }
  for (size_t at = 0; at + kWord < text.size(); at += kWord) add(word_at(at));
  add(word_at(text.size() - kWord));
  return hash;
}

void TensorName::ClearRound() {
  if (arrived == 0) return;
  std::fill(here.begin(), here.end(), uint8_t{0});
  arrived = 0;
  // A name that never recurs would keep memory that may be large.
  if (submissions > 1) return;
  for (RecordVector<std::byte>& inbox : inboxes) inbox = {};
}

TensorName* NameTable::Find(int32_t domain, std::string_view text) const {
  auto found = names_.find(Key{domain, text});
  return found == names_.end() ? nullptr : found->second.get();
}

TensorName* NameTable::FindOwn(int32_t domain, std::string_view text) {
  TensorName* next = NextOwn(domain, text);
  if (next == nullptr) {
    next = Find(domain, text);
    if (next != nullptr) Link(next);
  }
  return last_own_ = next;
}

// From now on the name follows last_own_.
void NameTable::Link(TensorName* name) {
  if (name->before != nullptr) name->before->after = nullptr;
  name->before = last_own_;
  if (last_own_ == nullptr) return;
  if (last_own_->after != nullptr) last_own_->after->before = nullptr;
  last_own_->after = name;
}

// Nothing here points to the name any more.
void NameTable::Unlink(TensorName* name) {
  if (name->before != nullptr) name->before->after = nullptr;
  if (name->after != nullptr) name->after->before = nullptr;
  name->before = name->after = nullptr;
  if (last_own_ == name) last_own_ = nullptr;
}

TensorName* NameTable::Add(int32_t domain, ProcessSet* set, std::string_view text) {
  auto name = std::make_unique<TensorName>();
  const uint32_t members = set->local_members();
  name->text = text;
  name->domain = domain;
  name->set = set;
  name->here.assign(members, 0);
  name->details.resize(members);
  name->descriptors.resize(members);
  name->more_descriptors.resize(members);
  name->inboxes.resize(members);
  TensorName* added = name.get();
  names_.emplace(Key{domain, added->text}, std::move(name));
  return added;
}

// Peers receive the new meaning of a number in order, so a name whose announcement was sent no
// longer needs its number.
void NameTable::NumberOwn(TensorName* name) {
  if (name->own_number != TensorName::kNoNumber) return;
  name->own_detail_known = false;
  ++name->references;
  if (!free_numbers_.empty()) {
    name->own_number = free_numbers_.back();
    free_numbers_.pop_back();
    own_numbers_[name->own_number] = name;
    return;
  }
  name->own_number = next_own_number_++ % kNumbers;
  if (own_numbers_.size() < kNumbers) {
    own_numbers_.push_back(name);
    return;
  }
  TensorName* former = std::exchange(own_numbers_[name->own_number], name);
  former->own_number = TensorName::kNoNumber;
  DropReference(former);
}

void NameTable::Retire(TensorName* name) {
  name->kept = false;
  if (name->once && name->own_number != TensorName::kNoNumber) {
    own_numbers_[name->own_number] = nullptr;
    free_numbers_.push_back(std::exchange(name->own_number, TensorName::kNoNumber));
    --name->references;
  }
  ForgetIfUnused(name);
}

Status NameTable::DefineOfPeer(uint32_t peer, uint32_t number, TensorName* name) {
  return SetNumber(peer, number, name);
}

Status NameTable::DefineExternal(uint32_t peer, uint32_t number) {
  return SetNumber(peer, number, nullptr);
}

Status NameTable::SetNumber(uint32_t peer, uint32_t number, TensorName* name) {
  if (number >= kNumbers) return InvalidArgument("a request with a number out of range");
  RecordVector<Number>& numbers = peer_numbers_[peer];
  if (number >= numbers.size()) numbers.resize(number + 1);
  Number former = std::exchange(numbers[number], {true, name});
  if (former.name == name) return Status::Ok();
  if (name != nullptr) ++name->references;
  if (former.name != nullptr) DropReference(former.name);
  return Status::Ok();
}

bool NameTable::OfPeer(uint32_t peer, uint32_t number, TensorName** name) const {
  const RecordVector<Number>& numbers = peer_numbers_[peer];
  if (number >= numbers.size()) return false;
  *name = numbers[number].name;
  return numbers[number].defined;
}

void NameTable::DropReference(TensorName* name) {
  --name->references;
  ForgetIfUnused(name);
}

void NameTable::ForgetIfUnused(TensorName* name) {
  if (!IsUnused(*name)) return;
  Unlink(name);
  if (name->set != nullptr) {
    names_.erase(names_.find(Key{name->domain, name->text}));
  } else {
    std::erase_if(detached_, [name](const auto& each) { return each.get() == name; });
  }
}

void NameTable::Detach(const ProcessSet* set) {
  for (auto at = names_.begin(); at != names_.end();) {
    TensorName& name = *at->second;
    if (name.domain != set->group.id) {
      ++at;
      continue;
    }
    name.ClearRound();
    Unlink(&name);
    name.set = nullptr;
    if (!IsUnused(name)) detached_.push_back(std::move(at->second));
    at = names_.erase(at);
  }
}

std::vector<TensorName*> NameTable::All() const {
  std::vector<TensorName*> all;
  for (const auto& [key, name] : names_) all.push_back(name.get());
  return all;
}

}  // namespace hvd
