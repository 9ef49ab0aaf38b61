// LinkServer: the agent's end of the links. Accepts workers at an abstract unix address, checks
// that they are of this user, job and slot, hands out data segments, and tells the observer who
// joins, leaves and disappears.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_GENERATION_LINK_SERVER_H_
#define HVD_LAUNCHER_GENERATION_LINK_SERVER_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/process/links/link_listener.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/link.h"

namespace hvd {

class LinkObserver {
 public:
  virtual ~LinkObserver() = default;
  // A hello with the right key and version for a free slot. Not ok: the worker is refused with this
  // sentence.
  virtual Status OnHello(const LinkHello& hello) = 0;
  // A part of where all ranks of the world are, in the order of ranks; the first comes right after
  // the hello.
  virtual void OnLayout(uint32_t slot, std::vector<RankRun> runs) = 0;
  virtual void OnJoin(uint32_t slot) = 0;
  virtual void OnGoodbye(uint32_t slot, const LinkGoodbye& goodbye) = 0;
  // The link of the slot ended; a new one may follow.
  virtual void OnLinkEnd(uint32_t slot) = 0;
  virtual void OnPut(uint32_t slot, LinkPut put) = 0;
  virtual void OnGet(uint32_t slot, LinkGet get) = 0;
};

class LinkServer {
 public:
  // Messages to one worker that does not read. One more, and its link is closed.
  static constexpr size_t kMostQueued = 1024;

  // `observer` outlives this object.
  LinkServer(asio::io_context& io, LinkObserver& observer, uint32_t slots, std::string job_key);
  ~LinkServer();

  // Refuses processes in other user or pid namespaces from now on.
  void RequireSameNamespaces() { same_namespaces_ = true; }
  Status Listen(const std::string& abstract_name) { return listener_.Listen(abstract_name); }
  // The same with an existing listening socket.
  void Serve(UniqueFd listener) { listener_.Serve(std::move(listener)); }

  // Appends slots.
  void AddSlots(uint32_t count) { slots_.resize(slots_.size() + count); }

  // Queues the message if the worker does not read; ignored if the slot has no link. Never calls
  // the observer: a link closed for a full queue ends later, from the io_context.
  void Send(uint32_t slot, const LinkMessage& message, std::shared_ptr<UniqueFd> fd = nullptr);
  // Handles what the slot's worker has sent up to now.
  void Drain(uint32_t slot);
  bool connected(uint32_t slot) const { return slots_[slot].link != nullptr; }
  // Messages that the slot's worker has not made room for.
  size_t queued(uint32_t slot) const;
  // Number of links, including those without a hello. Accepts pending clients first.
  size_t CountLinks();
  // Segments outlive the link of their owner: a peer that is slow may not have fetched yet what it
  // is about to read. Call when no rank is in a world any more, or another world begins.
  void ForgetOwnerless();
  // The process behind the slot's link, in our pid namespace; 0 when there is none or never was.
  int pid(uint32_t slot) const { return slots_[slot].pid; }

 private:
  struct Link;
  using LinkPtr = std::shared_ptr<Link>;
  struct Slot {
    LinkPtr link;
    int pid = 0;
  };
  struct Segment {
    std::shared_ptr<UniqueFd> fd;
    uint64_t bytes = 0;
    uint32_t slot = 0;
    bool ownerless = false;  // the owner's link has ended
  };

  void Accept(LinkClient client);
  void WaitToRead(const LinkPtr& link);
  void WaitToWrite(const LinkPtr& link);
  void ReadAll(const LinkPtr& link);
  void Handle(const LinkPtr& link, LinkMessage message);
  void HandleHello(const LinkPtr& link, const LinkHello& hello);
  Status CheckHello(const Link& link, const LinkHello& hello);
  void Allocate(const LinkPtr& link, uint64_t bytes);
  void Fetch(const LinkPtr& link, uint32_t segment);
  void Free(const LinkPtr& link, uint32_t segment);
  void SendOn(const LinkPtr& link, const LinkMessage& message,
              std::shared_ptr<UniqueFd> fd = nullptr);
  static void Overrun(const LinkPtr& link);
  void End(const LinkPtr& link);

  asio::io_context& io_;
  LinkObserver& observer_;
  std::string job_key_;
  LinkListener listener_;
  std::vector<Slot> slots_;
  size_t open_links_ = 0;
  bool same_namespaces_ = false;
  std::map<uint32_t, Segment> segments_;
  uint32_t next_segment_ = 1;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_LINK_SERVER_H_
