#include "launcher/agent_tree.h"

#include <algorithm>
#include <variant>

namespace hvd {
namespace {

const TreeBlock* BlockOf(const std::vector<TreeBlock>& blocks, uint32_t host) {
  auto at = std::find_if(blocks.begin(), blocks.end(),
                         [&](const TreeBlock& block) { return block.Has(host); });
  return at == blocks.end() ? nullptr : &*at;
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

std::vector<std::pair<uint32_t, TreeDown>> TreeOutbox::Take() {
  std::vector<std::pair<uint32_t, TreeDown>> taken;
  for (auto& [child, down] : waiting_) taken.emplace_back(child, std::move(down));
  waiting_.clear();
  return taken;
}

bool GoesByTree(const ToDriver& message) {
  return std::visit(
      [](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, PutKey> || std::is_same_v<M, WantKey>) return m.epoch > 0;
        return std::is_same_v<M, WorkerStarted> || std::is_same_v<M, WorkerNotStarted> ||
               std::is_same_v<M, RankJoined> || std::is_same_v<M, RanksJoined> ||
               std::is_same_v<M, RankLeft> || std::is_same_v<M, RankLost> ||
               std::is_same_v<M, WorkerExited>;
      },
      message);
}

TreeNode::TreeNode(uint32_t host, TreePlace place)
    : host_(host), place_(std::move(place)), down_(place_.below) {}

// Ranks that join are many, and mostly neighbours.
void TreeNode::Joined(uint32_t first, uint32_t count) {
  auto next = joined_.upper_bound(first);
  auto at = next == joined_.begin() ? joined_.end() : std::prev(next);
  if (at != joined_.end() && at->first + at->second == first) {
    at->second += count;
  } else {
    at = joined_.insert_or_assign(first, count).first;
  }
  if (next != joined_.end() && at->first + at->second == next->first) {
    at->second += next->second;
    joined_.erase(next);
  }
}

void TreeNode::FlushJoined() {
  if (joined_.empty()) return;
  RanksJoined message;
  for (auto [first, count] : joined_) message.spans.push_back({first, count});
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
  for (TreeUpEntry& entry : batch.entries) {
    if (block == nullptr || block->root != child || !block->Has(entry.host))
      return InvalidArgument("it speaks for host " + std::to_string(entry.host) +
                             ", which is not below it");
    Result<ToDriver> message = DecodeToDriver(entry.message);
    if (!message.ok()) return message.status();
    if (!Settle(entry.host, *message)) Up(entry.host, std::move(entry.message));
  }
  return Status::Ok();
}

bool TreeNode::Settle(uint32_t host, const ToDriver& message) {
  if (const auto* put = std::get_if<PutKey>(&message)) {
    if (put->epoch != directory_.epoch()) return false;
    for (uint32_t reader : directory_.Put(put->key, put->value))
      Give(reader, {put->epoch, put->key, put->value});
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
    FlushJoined();  // the order of what a rank does stays
    return false;
  }
  if (want->epoch != directory_.epoch()) return false;
  if (const std::string* value = directory_.Find(want->key)) {
    Give(host, {want->epoch, want->key, *value});
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
  for (const TreeDownEntry& entry : message.entries) {
    if (Status status = Down(entry); !status.ok()) return status;
  }
  return Status::Ok();
}

Status TreeNode::Down(const TreeDownEntry& entry) {
  Result<ToAgent> inner = DecodeToAgent(entry.message);
  if (!inner.ok()) return inner.status();
  if (std::holds_alternative<TreeDown>(*inner))
    return InvalidArgument("an envelope in an envelope");
  if (const auto* begin = std::get_if<BeginEpoch>(&*inner)) directory_.Begin(begin->epoch);
  if (const auto* value = std::get_if<KeyValue>(&*inner)) {
    // Asked for by this node, on behalf of whoever waits.
    if (value->epoch != directory_.epoch()) return Status::Ok();
    for (uint32_t reader : directory_.Put(value->key, value->value)) Give(reader, *value);
    return Status::Ok();
  }
  down_.Add(entry);
  if (entry.first <= host_ && host_ < entry.end) own_.push_back(std::move(*inner));
  return Status::Ok();
}

TreeUp TreeNode::TakeUp() {
  FlushJoined();
  return std::exchange(up_, {});
}

std::vector<ToAgent> TreeNode::TakeOwn() { return std::exchange(own_, {}); }

// ---- the driver's end

TreeRoot::TreeRoot(uint32_t hosts, uint32_t radix)
    : hosts_(hosts),
      radix_(radix),
      flat_(hosts <= radix),
      down_(TreeBlocks(0, hosts, flat_ ? 0 : radix)) {}

bool TreeRoot::Cut(uint32_t host) {
  if (std::find(cut_.begin(), cut_.end(), host) != cut_.end()) return false;
  cut_.push_back(host);
  return true;
}

Result<std::vector<std::pair<uint32_t, ToDriver>>> TreeRoot::Open(uint32_t host,
                                                                  const TreeUp& batch) const {
  const TreePlace place = PlaceOf(host);
  const bool may = !place.parent || std::find(cut_.begin(), cut_.end(), host) != cut_.end();
  std::vector<std::pair<uint32_t, ToDriver>> messages;
  for (const TreeUpEntry& entry : batch.entries) {
    if (!may || !place.block.Has(entry.host))
      return InvalidArgument("its agent speaks for hosts that are not below it");
    Result<ToDriver> message = DecodeToDriver(entry.message);
    if (!message.ok()) return message.status();
    if (!GoesByTree(*message))
      return InvalidArgument("its agent sends a message that does not belong into the tree");
    messages.emplace_back(entry.host, std::move(*message));
  }
  return messages;
}

}  // namespace hvd
