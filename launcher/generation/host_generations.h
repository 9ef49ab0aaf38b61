// HostGenerations: the ranks of one host in their worlds: their links, which of them wait for
// a generation and which are in one, the page, the entries of the directory. A rank that is lost
// breaks the page here and now; the observer learns of it afterwards.
//
// One thread, that of the io_context; deaths come in from threads of the page's watch.
#ifndef HVD_LAUNCHER_GENERATION_HOST_GENERATIONS_H_
#define HVD_LAUNCHER_GENERATION_HOST_GENERATIONS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/generation/generation_page.h"
#include "launcher/generation/link_server.h"
#include "launcher/generation/rank_slots.h"
#include "launcher/generation/running_page.h"
#include "launcher/wire/kv_table.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"
#include "runtime/net/layout.h"

namespace hvd {

// A host's part of a world.
struct HostWorld {
  std::string host;  // its name, for texts
  // By slot: a number that a process of this host keeps from generation to generation. In a world
  // of fixed size it is the local rank.
  std::vector<Placement> slots;
  uint32_t size = 0;
  bool homogeneous = true;
  std::vector<RankRun> layout;  // of all ranks
  std::string data_key;
  ListenHints listen;
  bool ranks_change = false;  // another generation may have others

  // Of the slot in the present generation, or the last one that it was in.
  uint32_t RankOf(uint32_t slot) const { return slots[slot].rank; }
  uint32_t LocalRankOf(uint32_t slot) const { return slots[slot].local_rank; }
};

// A rank that said goodbye.
struct LeftRank {
  uint64_t generation = 0;
  TimePoint since{};        // when it began to leave
  bool had_failed = false;  // before that a collective of it failed because of other ranks
};

// A rank that is gone without a goodbye; `generation` 0: while it waited for one.
struct LostRank {
  int pid = 0;
  uint64_t generation = 0;
  TimePoint noticed{};
  std::string reason, doing;
  bool had_failed = false;  // as in LeftRank
};

class HostGenerationsObserver {
 public:
  virtual ~HostGenerationsObserver() = default;
  virtual Status OnHello(const LinkHello& hello) = 0;
  // As in LinkObserver.
  virtual void OnLayout(uint32_t slot, std::vector<RankRun> runs) = 0;
  virtual void OnJoined(uint32_t slot) = 0;
  // The page of a generation is there, and no rank of these slots has it yet.
  virtual void OnPage(const std::vector<uint32_t>& slots) = 0;
  virtual void OnLeft(uint32_t slot, const LeftRank& left) = 0;
  virtual void OnLost(uint32_t slot, const LostRank& lost) = 0;
  virtual void OnLinkClosed(uint32_t slot) = 0;
  // A rank of this host put a key; a rank of this host is the first here to want one.
  virtual void OnPut(const LinkPut& put) = 0;
  virtual void OnWanted(const LinkGet& get) = 0;
};

class HostGenerations final : private LinkObserver {
 public:
  // `observer` outlives this object. `why_elsewhere` ends the sentence about a lost rank: where the
  // cause is told.
  HostGenerations(asio::io_context& io, HostGenerationsObserver& observer, HostWorld world,
                  std::string job_key, std::string why_elsewhere);

  LinkServer& links() { return links_; }
  // Which slots wait for a generation, and which are in one.
  const RankSlots& slots() const { return slots_; }
  // Of the generation that runs.
  const RunningPage& page() const { return page_; }
  RunningPage& page() { return page_; }
  const HostWorld& world() const { return world_; }
  void set_world(HostWorld world) { world_ = std::move(world); }

  // The slots of `members` get the generation; their local ranks in the world are 0 to
  // members.size() - 1 in any order. Not ok: none of them; they are told.
  Status Begin(uint64_t generation, const std::vector<uint32_t>& members);
  // More slots, behind those that are there.
  void AddSlots(const std::vector<Placement>& slots);
  // A slot that waits is told that the job does not need it any more.
  void Dismiss(uint32_t slot, const std::string& reason);
  // Generation 0: the one that is waited for.
  void Break(uint64_t generation, const std::string& reason);
  // The process of the slot has ended, as its parent sees it.
  void NoteExit(uint32_t slot, int pid);
  // How many commits the process of the slot has passed in its life.
  uint64_t CommitsOf(uint32_t slot) const;
  // The block of the slot's rank in the page of this generation; null: it has none there.
  const RankBlock* BlockOf(uint32_t slot, uint64_t generation) const;
  // The process of the slot that has a link; 0: none ever had.
  int PidOf(uint32_t slot) const { return links_.pid(slot); }
  // From another host.
  void GiveValue(uint64_t generation, const std::string& key, const std::string& value);

 private:
  Status OnHello(const LinkHello& hello) override { return observer_.OnHello(hello); }
  void OnLayout(uint32_t slot, std::vector<RankRun> runs) override {
    observer_.OnLayout(slot, std::move(runs));
  }
  void OnJoin(uint32_t slot) override;
  void OnGoodbye(uint32_t slot, const LinkGoodbye& goodbye) override;
  void OnLinkEnd(uint32_t slot) override;
  void OnPut(uint32_t slot, LinkPut put) override;
  void OnGet(uint32_t slot, LinkGet get) override;

  void SendGeneration(uint32_t slot, uint64_t generation);
  void LeaveGeneration(uint32_t slot);
  void Lose(uint32_t slot, int pid, const char* how);
  void SendBroken(uint64_t generation, const std::string& reason);
  void DropPageIfUnused();
  void OnMarkDied(uint32_t slot, uint64_t generation);
  void BreakDamaged(const std::string& what);

  asio::io_context& io_;
  HostGenerationsObserver& observer_;
  HostWorld world_;
  std::string why_elsewhere_;
  LinkServer links_;
  RankSlots slots_;
  RunningPage page_;
  TimePoint begun_{};  // the page's generation
  KvTable directory_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_HOST_GENERATIONS_H_
