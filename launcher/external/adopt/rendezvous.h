// Rendezvous: how the adopting agents of several hosts form a world through a key-value server.
//
//   host of rank 0: makes up a name N, puts it under "leader", waits for "rank.N.R" of every R,
//                   puts "world.N"
//   the others:     read "leader", put "rank.N.R" for each of their ranks, wait for a "world.N"
//                   that names them
//
// Records left by an earlier job or agent have another N, or none of the current tokens, and are
// ignored. The server has no access control, so records are validated (rendezvous_records.h). An
// invalid record ends the rendezvous, or the world, with a sentence that names the server and the
// record; the other hosts are told. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_RENDEZVOUS_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_RENDEZVOUS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/external/adopt/http_store.h"
#include "launcher/external/adopt/rendezvous_records.h"
#include "runtime/base/clock.h"

namespace hvd {

struct MetWorld {
  uint64_t generation = 0;
  HostWorld part;  // of this host; without name and addresses
};

class Rendezvous {
 public:
  using OnValue = std::function<void(const std::string&)>;

  // `secret`: of the job (world_secret.h), or "".
  Rendezvous(asio::io_context& io, std::string server, std::string secret);

  // Cancels a previous call. `done` runs once, unless Stop is called first.
  void Meet(WaitingHost here, std::function<void(Result<MetWorld>)> done);
  // The world has ended, or no rank waits for it any more.
  void Stop();

  // Tells the other hosts that the world, or the one being formed, has failed.
  void SendBroken(const std::string& reason);
  // Such a message is still being sent; for 10 s at most.
  bool telling() const { return telling_ > 0; }
  // In a world: `broken` runs when another host reports a failure, a requested record is invalid,
  // or the server was unreachable for too long during a request.
  void Watch(OnValue broken);

  // The directory of the world; `done` runs once the key exists, unless Stop is called first.
  void Put(const std::string& key, const std::string& value);
  void Await(const std::string& key, OnValue done);

  // Where ranks on other hosts can reach this one; "" if unknown.
  const std::string& local_address() const { return store_.local_address(); }

 private:
  std::string Key(const char* what, const std::string& rest = "") const;
  // Under a key of this rendezvous. Records are sealed.
  void GetRecord(const std::string& key, size_t most_bytes, HttpStore::OnGet done);
  void PutRecord(const std::string& key, const std::string& text, HttpStore::OnPut done);
  void Later(Duration delay, std::function<void()> then);
  void Poll(std::string key, size_t most_bytes, Duration delay, OnValue on_value);
  void LookForBreak();
  void PutRanks(size_t next, std::function<void()> then);
  void Lead();
  void Gather();
  void LookForLeader(Duration delay);
  void EnterRendezvous();
  void LookForWorld(Duration delay);
  void HandleWorld(const std::string& key, const std::string& text, Duration delay);
  void FinishWith(const std::string& world_key, const WorldRecord& world);
  void Finish(Result<MetWorld> outcome);
  void Send(const std::string& key, const std::string& text);
  // The rendezvous or the world has failed on this host.
  void Fail(const std::string& reason);
  // The value under `key` is invalid; `what` ends the sentence.
  void RefuseRecord(const std::string& key, const Status& what);
  // Checks the result of a request for `key`. False, after Fail, if the value is invalid or no
  // request has succeeded for too long.
  bool Tolerate(const std::string& key, const Status& status);

  asio::io_context& io_;
  HttpStore store_;
  const std::string secret_;
  const Duration most_silence_;
  uint64_t turn_ = 0;  // callbacks of earlier turns are ignored
  WaitingHost here_;
  std::function<void(Result<MetWorld>)> done_;
  OnValue broken_;  // in a world
  int telling_ = 0;
  bool leads_ = false;
  bool old_refusal_ = false;  // of an earlier rendezvous of this name
  std::string token_, name_;  // of this host, of the rendezvous
  std::vector<RankEntry> notes_;
  TimePoint failing_since_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_RENDEZVOUS_H_
