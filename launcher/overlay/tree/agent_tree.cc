#include "launcher/overlay/tree/agent_tree.h"

#include <algorithm>
#include <variant>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

const TreeBlock* BlockOf(const std::vector<TreeBlock>& blocks, uint32_t host) {
  auto at = std::find_if(blocks.begin(), blocks.end(),
                         [&](const TreeBlock& block) { return block.Has(host); });
  return at == blocks.end() ? nullptr : &*at;
}

uint32_t EndOf(const RankSpan& span) { return span.first + span.count; }

// Opens the messages of a host for those in `block`, which are below it. Joins are aggregated on
// the way: a message about them may concern all of these hosts, any other concerns the host that it
// names.
Result<std::vector<std::pair<uint32_t, ToDriver>>> OpenBatch(const TreeBlock& block,
                                                             const TreeUp& batch,
                                                             const HostOfRank& host_of_rank) {
  std::vector<std::pair<uint32_t, ToDriver>> messages;
  for (const TreeUpEntry& entry : batch.entries) {
    if (!block.Has(entry.host))
      return InvalidArgument(
          Format("its agent speaks for host {}, which is not below it", entry.host));
    Result<ToDriver> message = DecodeToDriver(entry.message);
    if (!message.ok()) return message.status();
    if (!GoesByTree(*message))
      return InvalidArgument("its agent sends a message that does not go up the tree");
    const bool gathered = std::holds_alternative<RanksJoined>(*message);
    const TreeBlock speaks_for = gathered ? block : TreeBlock{entry.host, entry.host + 1};
    HVD_RETURN_IF_ERROR(CheckSpeaker(*message, speaks_for, host_of_rank));
    messages.emplace_back(entry.host, std::move(*message));
  }
  return messages;
}

// Opens a message to hosts of `block` over the tree.
Result<ToAgent> OpenEntry(const TreeBlock& block, const TreeDownEntry& entry) {
  if (entry.first >= entry.end || entry.first < block.root || entry.end > block.end)
    return InvalidArgument(
        Format("its agent has a message for hosts {} to {}, which are not in this part of the tree",
               entry.first, entry.end));
  Result<ToAgent> message = DecodeToAgent(entry.message);
  if (!message.ok()) return message;
  if (!GoesByTree(*message))
    return InvalidArgument("its agent sends a message that does not go down the tree");
  const auto* value = std::get_if<KeyValue>(&*message);
  if (value == nullptr) return message;
  HVD_RETURN_IF_ERROR(CheckEntry(*value));
  return message;
}

}  // namespace

std::vector<TreeBlock> TreeBlocks(uint32_t first, uint32_t end, uint32_t radix) {
  const uint32_t hosts = end - std::min(first, end);
  const uint32_t count = radix == 0 ? hosts : std::min(hosts, radix);
  std::vector<TreeBlock> blocks;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t size = hosts / count + (i < hosts % count ? 1 : 0);
    blocks.push_back({first, first + size});
    first += size;
  }
  return blocks;
}

TreePlace PlaceInTree(uint32_t host, uint32_t hosts, uint32_t radix) {
  TreePlace place;
  place.below = TreeBlocks(0, hosts, radix);
  while (place.block.end == 0 || place.block.root != host) {
    if (place.block.end != 0) place.parent = place.block.root;
    place.block = *BlockOf(place.below, host);
    place.below = TreeBlocks(place.block.root + 1, place.block.end, radix);
  }
  return place;
}

std::vector<uint32_t> TreeNeighbours(const TreePlace& place) {
  std::vector<uint32_t> neighbours;
  if (place.parent) neighbours.push_back(*place.parent);
  for (const TreeBlock& block : place.below) neighbours.push_back(block.root);
  return neighbours;
}

void TreeOutbox::Add(const TreeDownEntry& entry) {
  for (const TreeBlock& block : blocks_) {
    const uint32_t first = std::max(entry.first, block.root);
    const uint32_t end = std::min(entry.end, block.end);
    if (first < end) waiting_[block.root].entries.push_back({first, end, entry.message});
  }
}

std::vector<std::pair<uint32_t, TreeDown>> TreeOutbox::PopAll() {
  std::vector<std::pair<uint32_t, TreeDown>> taken;
  for (auto& [child, down] : waiting_) taken.emplace_back(child, std::move(down));
  waiting_.clear();
  return taken;
}

TreeNode::TreeNode(uint32_t host, TreePlace place, HostOfRank host_of_rank)
    : host_(host),
      place_(std::move(place)),
      host_of_rank_(std::move(host_of_rank)),
      down_(place_.below) {}

// Joins are frequent, and mostly of consecutive ranks.
void TreeNode::Joined(uint32_t first, uint32_t count) {
  auto next = joined_.upper_bound(first);
  auto at = next == joined_.begin() ? joined_.end() : std::prev(next);
  if (at != joined_.end() && at->first + at->second == first) {
    at->second += count;
  } else {
    at = joined_.emplace(first, count).first;
    at->second = std::max(at->second, count);
  }
  if (next != joined_.end() && at->first + at->second == next->first) {
    at->second += next->second;
    joined_.erase(next);
  }
}

void TreeNode::FlushJoined() {
  if (joined_.empty()) return;
  RanksJoined message;
  for (auto [first, count] : joined_) {  // a host may have reported it twice
    const uint32_t done = message.spans.empty() ? 0 : EndOf(message.spans.back());
    if (first + count <= done) continue;
    if (message.spans.empty() || first > done) {
      message.spans.push_back({first, count});
    } else {
      message.spans.back().count = first + count - message.spans.back().first;
    }
  }
  joined_.clear();
  Up(host_, EncodeToDriver(message));
}

void TreeNode::Up(uint32_t host, std::string bytes) {
  up_.entries.push_back({host, std::move(bytes)});
}

void TreeNode::FromSelf(const ToDriver& message) {
  if (!Settle(host_, message)) Up(host_, EncodeToDriver(message));
}

Status TreeNode::FromBelow(uint32_t child, TreeUp batch) {
  const TreeBlock* block = BlockOf(place_.below, child);
  if (block == nullptr || block->root != child)
    return InvalidArgument("its agent is not right below this host");
  auto messages = OpenBatch(*block, batch, host_of_rank_);
  if (!messages.ok()) return messages.status();
  for (const auto& [host, message] : *messages) {
    if (Status status = AdmitKey(*block, message); !status.ok()) return status;
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    const auto& [host, message] = (*messages)[i];
    if (!Settle(host, message)) Up(host, std::move(batch.entries[i].message));
  }
  return Status::Ok();
}

Status TreeNode::AdmitKey(const TreeBlock& child, const ToDriver& message) {
  const auto* put = std::get_if<PutKey>(&message);
  const auto* want = std::get_if<WantKey>(&message);
  if (put == nullptr && want == nullptr) return Status::Ok();
  const std::string& key = put != nullptr ? put->key : want->key;
  const uint64_t generation = put != nullptr ? put->generation : want->generation;
  if (generation != directory_.generation()) return Status::Ok();  // it is not kept
  return directory_.Admits(child.root, key, MostKeys(child, host_of_rank_))
             ? Status::Ok()
             : InvalidArgument(
                   "its agent names more keys of the directory than its hosts have use for");
}

bool TreeNode::Settle(uint32_t host, const ToDriver& message) {
  if (const auto* put = std::get_if<PutKey>(&message)) {
    if (put->generation != directory_.generation()) return false;
    for (uint32_t reader : directory_.Put(put->key, put->value))
      Give(reader, {put->generation, put->key, put->value});
    return false;  // others may want it
  }
  if (const auto* joined = std::get_if<RankJoined>(&message)) {
    Joined(joined->rank, 1);
    return true;
  }
  if (const auto* joined = std::get_if<RanksJoined>(&message)) {
    for (const RankSpan& span : joined->spans) Joined(span.first, span.count);
    return true;
  }
  const auto* want = std::get_if<WantKey>(&message);
  if (want == nullptr) {
    FlushJoined();  // keeps the order of each rank's events
    return false;
  }
  if (want->generation != directory_.generation()) return false;
  if (const std::string* value = directory_.Find(want->key)) {
    Give(host, {want->generation, want->key, *value});
  } else if (directory_.Await(host, want->key)) {
    Up(host_, EncodeToDriver(*want));
  }
  return true;
}

void TreeNode::Give(uint32_t host, const KeyValue& entry) {
  if (host == host_) {
    own_.emplace_back(entry);
    return;
  }
  down_.Add({host, host + 1, EncodeToAgent(entry)});
}

Status TreeNode::FromAbove(const TreeDown& message) {
  std::vector<ToAgent> inner;
  for (const TreeDownEntry& entry : message.entries) {
    Result<ToAgent> opened = OpenEntry(place_.block, entry);
    if (!opened.ok()) return opened.status();
    inner.push_back(std::move(*opened));
  }
  for (size_t i = 0; i < inner.size(); ++i) Down(message.entries[i], std::move(inner[i]));
  return Status::Ok();
}

void TreeNode::Down(const TreeDownEntry& entry, ToAgent inner) {
  if (const auto* begin = std::get_if<BeginGeneration>(&inner)) directory_.Begin(begin->generation);
  if (const auto* value = std::get_if<KeyValue>(&inner)) {
    // Requested by this node on behalf of waiting hosts; unrequested answers are discarded.
    if (value->generation != directory_.generation() || !directory_.Awaited(value->key)) return;
    for (uint32_t reader : directory_.Put(value->key, value->value)) Give(reader, *value);
    return;
  }
  down_.Add(entry);
  if (entry.first <= host_ && host_ < entry.end) own_.push_back(std::move(inner));
}

TreeUp TreeNode::PopUpward() {
  FlushJoined();
  return std::exchange(up_, {});
}

std::vector<ToAgent> TreeNode::PopOwn() { return std::exchange(own_, {}); }

// ---- the driver's end

TreeRoot::TreeRoot(uint32_t hosts, uint32_t radix, HostOfRank host_of_rank)
    : hosts_(hosts),
      width_(hosts <= radix ? 0 : std::min(radix, kWidestTree)),
      host_of_rank_(std::move(host_of_rank)),
      down_(TreeBlocks(0, hosts, width_)) {}

bool TreeRoot::Cut(uint32_t host) {
  if (std::find(cut_.begin(), cut_.end(), host) != cut_.end()) return false;
  cut_.push_back(host);
  return true;
}

Result<std::vector<std::pair<uint32_t, ToDriver>>> TreeRoot::Open(uint32_t host,
                                                                  const TreeUp& batch) const {
  const TreePlace place = PlaceOf(host);
  const bool may = !place.parent || std::find(cut_.begin(), cut_.end(), host) != cut_.end();
  if (!may) return InvalidArgument("its agent speaks for hosts, and another host is above it");
  return OpenBatch(place.block, batch, host_of_rank_);
}

}  // namespace hvd
