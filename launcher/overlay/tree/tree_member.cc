#include "launcher/overlay/tree/tree_member.h"

#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// How long a host with others below it collects messages to send up together. Far less than a
// worker takes to start.
constexpr Duration kGather = std::chrono::milliseconds(1);

}  // namespace

TreeMember::TreeMember(asio::io_context& io, Owner owner)
    : io_(io), owner_(std::move(owner)), gathering_(io) {}

std::string TreeMember::Listen(const ProbeConnectivity& question) {
  for (size_t i = 0; i < std::min(question.others.size(), question.names.size()); ++i)
    names_[question.others[i]] = question.names[i];
  if (question.passes_on == 0) return "";
  Result<std::vector<std::string>> addresses = AddressesOfInterfaces(question.interfaces);
  if (!addresses.ok()) return "";
  Result<MeshListener> listener = OpenMeshListener(
      {std::move(*addresses), question.first_port, question.last_port}, question.host);
  if (!listener.ok()) return "";
  listener_ = std::move(*listener);
  return EncodeMeshRecord(listener_.record);
}

void TreeMember::Join(const StartJob& start) {
  if (node_ != nullptr || start.tree.host >= start.tree.hosts) return;
  // A host without others below it that the driver is connected to is in the tree, too: messages of
  // the driver to all hosts reach it through the tree.
  TreePlace place = PlaceInTree(start.tree.host, start.tree.hosts, start.tree.radix);
  straight_ = !place.parent;
  node_ = std::make_unique<TreeNode>(start.tree.host, place,
                                     HostsOf(start.ranks.layout, start.ranks.size));
  TreeLinksOptions options{start.tree.host, start.job_key,
                           [this](uint32_t host) { return NameOf(host); }};
  links_ = std::make_unique<TreeLinks>(io_, static_cast<TreeLinksObserver&>(*this),
                                       std::move(options), std::move(listener_));
  std::vector<uint32_t> children;
  for (const TreeBlock& block : place.below) children.push_back(block.root);
  links_->Expect(children);
  if (!place.parent) return;
  Result<MeshRecord> above = DecodeMeshRecord(start.tree.above);
  links_->Dial(*place.parent,
               above.ok() ? Reachable(*above, ThisMachine()) : std::vector<MeshAddress>());
}

std::string TreeMember::NameOf(uint32_t host) const {
  auto known = names_.find(host);
  if (known != names_.end()) return known->second;
  return node_ != nullptr && host == node_->place().block.root ? "it" : Format("host {}", host);
}

// ---- up

bool TreeMember::Up(const ToDriver& message) {
  if (node_ == nullptr || !GoesByTree(message)) return false;
  node_->FromSelf(message);
  Deliver();
  return true;
}

Status TreeMember::OnFromBelow(uint32_t child, TreeUp batch) {
  Status status = node_->FromBelow(child, std::move(batch));
  Deliver();
  return status;
}

void TreeMember::GatherUp() {
  if (gathers_) return;
  gathers_ = true;
  gathering_.expires_after(node_->place().below.empty() ? Duration::zero() : kGather);
  gathering_.async_wait([this](const asio::error_code& error) {
    gathers_ = false;
    if (!error) SendUp();
  });
}

void TreeMember::SendUp() {
  TreeUp batch = node_->PopUpward();
  if (batch.entries.empty()) return;
  if (straight_) {
    owner_.tell_driver(std::move(batch));
  } else {
    links_->SendUp(batch);
  }
}

// ---- down

void TreeMember::Down(const TreeDown& message) {
  if (node_ == nullptr) return;
  if (Status status = OnFromAbove(message); !status.ok())
    owner_.tell_driver(AgentWarning{"a message of hvdrun's is refused: " + status.message()});
}

Status TreeMember::OnFromAbove(const TreeDown& message) {
  Status status = node_->FromAbove(message);
  Deliver();
  return status;
}

// Sends the messages that the node has ready, in all directions. A message for this host may
// produce more.
void TreeMember::Deliver() {
  for (const auto& [child, part] : node_->PopDownward()) links_->SendDown(child, part);
  if (node_->has_up()) GatherUp();
  for (ToAgent& message : node_->PopOwn()) owner_.handle(std::move(message));
}

// ---- ends

void TreeMember::OnAboveLost(const Status& why) {
  straight_ = true;
  WarnIfRefused(*node_->place().parent, why);
  owner_.tell_driver(TreeCut{why.message()});
  const TreeBlock block = node_->place().block;
  Down(TreeDown{{{block.root, block.end, EncodeToAgent(Resend{})}}});
}

void TreeMember::OnBelowLost(uint32_t child, const Status& why) {
  WarnIfRefused(child, why);
  owner_.tell_driver(AgentNote{NameOf(child) + " is not below it any more: " + why.message()});
}

// A connection that merely ended needs no warning: the end of a host is reported elsewhere.
void TreeMember::WarnIfRefused(uint32_t host, const Status& why) {
  if (why.code() != Code::kInvalidArgument) return;
  owner_.tell_driver(AgentWarning{"it closed its connection to " + NameOf(host) +
                                  " in the tree of agents: " + why.message()});
}

void TreeMember::Tick(TimePoint now) {
  if (links_ != nullptr) links_->Tick(now);
}

void TreeMember::Close() {
  gathering_.cancel();
  if (links_ != nullptr) links_->Close();
}

}  // namespace hvd
