// The link between a worker and the agent of its host: a unix SOCK_SEQPACKET connection on an
// abstract address (no file, so nothing is left behind), control only. PROTOCOL.md has the
// conversation; not for tensors.
//
// The worker finds it by three variables set by the agent: HVD_AGENT (the abstract name), HVD_SLOT
// (its slot at the agent, constant across generations) and HVD_JOB_KEY (proves that it belongs to
// this job).
#ifndef HVD_RUNTIME_NET_LINK_H_
#define HVD_RUNTIME_NET_LINK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/layout.h"

namespace hvd {

inline constexpr uint32_t kLinkVersion = 5;
inline constexpr size_t kMaxLinkMessage = 4096;
inline constexpr size_t kMaxRunsPerMessage = 240;

// ---- worker to agent

// First message. The agent answers with Refused or nothing. Of a hello of another version only the
// version is read.
struct LinkHello {
  uint32_t version = kLinkVersion;
  uint32_t slot = 0;
  uint32_t pid = 0;  // in the worker's pid namespace, for texts; the agent trusts SO_PEERCRED
  std::string job_key;
  uint32_t rank = 0, size = 0;  // from its launcher; size 0: the agent knows (hvdrun)
};
// "I want to be in the next generation". Answered by LinkGeneration once every rank of the job has
// asked, or by LinkBroken, or by LinkDismissed.
struct LinkJoin {};
// "I am out of this generation and will not touch its page again".
struct LinkGoodbye {
  uint64_t generation = 0;
  // Steady clock: since when others may have failed because of it. 0: just now.
  uint64_t since_ns = 0;
};
// Asks for a data segment of its own. Answered by LinkSegment with a descriptor, in order. The
// worker reserves the pages.
struct LinkAllocate {
  uint64_t bytes = 0;
};
// Asks for a data segment of any local rank. Answered by LinkSegment.
struct LinkFetch {
  uint32_t segment = 0;
};
// The data segment is no longer needed by its owner; the agent forgets it.
struct LinkFree {
  uint32_t segment = 0;
};
// For the directory of the generation (kv_store.h).
struct LinkPut {
  uint64_t generation = 0;
  std::string key, value;
};
// Answered by LinkValue once the key is put; never if the generation breaks before.
struct LinkGet {
  uint64_t generation = 0;
  std::string key;
};

// ---- agent to worker

// A part of the layout of the generation that the next LinkGeneration begins; several if needed, in
// the order of ranks.
struct LinkLayout {
  uint64_t generation = 0;
  std::vector<RankRun> runs;
};
// The world of a generation begins. One descriptor: the job page.
struct LinkGeneration {
  uint64_t generation = 0;
  uint64_t page_bytes = 0;
  uint32_t rank = 0, size = 1, local_rank = 0, local_size = 1, cross_rank = 0, cross_size = 1;
  uint8_t homogeneous = 1;
  std::string data_key;  // proves to peers on other hosts that this rank belongs to the job
  ListenHints listen;
  uint8_t ranks_change = 0;  // 1: after this generation there may be another, of other ranks
};
// The generation (or the one being waited for, when `generation` is 0) cannot go on. Also written
// into the page.
struct LinkBroken {
  uint64_t generation = 0;
  std::string reason;
};
// A data segment. One descriptor, or none and the reason in `error`. Ids are unique in the job's
// life on this host, from 1; `bytes` is the size.
struct LinkSegment {
  uint32_t segment = 0;
  uint64_t bytes = 0;
  std::string error;
};
// The hello was not accepted; the agent closes.
struct LinkRefused {
  std::string reason;
};
// The value that LinkGet asked for.
struct LinkValue {
  uint64_t generation = 0;
  std::string key, value;
};

// The answer to LinkJoin if the job continues without this worker: its host left the list, or its
// slot is no longer needed. The worker must end with success.
struct LinkDismissed {
  std::string reason;
};

using LinkMessage = std::variant<LinkHello, LinkJoin, LinkGoodbye, LinkAllocate, LinkFetch,
                                 LinkFree, LinkGeneration, LinkBroken, LinkSegment, LinkRefused,
                                 LinkPut, LinkGet, LinkValue, LinkLayout, LinkDismissed>;

// Text is cut so that a message never exceeds kMaxLinkMessage bytes.
std::string EncodeLink(const LinkMessage& message);
// kInvalidArgument for anything that is not exactly one message.
Result<LinkMessage> DecodeLink(std::string_view bytes);

// ---- the socket under it

struct ReceivedLink {
  LinkMessage message;
  UniqueFd fd;  // the descriptor that came along, if one did
};

struct LinkClient {
  UniqueFd socket;  // non-blocking, close-on-exec
  int pid = 0;
};

// A listening abstract unix SEQPACKET socket, non-blocking, close-on-exec.
Result<UniqueFd> ListenLink(const std::string& abstract_name);
// The same; an invalid descriptor if the name is taken.
Result<UniqueFd> ListenLinkIfFree(const std::string& abstract_name);
// For a listening socket created by another process: from now on, clients see this process as their
// peer.
Status ListenInOwnName(int listener);
// The next process of this user (or root) that connects; rejects others. kInProgress if there is
// none. With any other error one may be waiting but cannot be accepted now, for example without a
// free descriptor.
Result<LinkClient> AcceptLink(int listener);
// A connected socket to it, blocking, close-on-exec. Checks that the peer runs as this user (or
// root).
Result<UniqueFd> ConnectLink(const std::string& abstract_name);
// The same; an invalid descriptor if nobody listens.
Result<UniqueFd> ConnectLinkIfAny(const std::string& abstract_name);

// Sends one message, with a descriptor unless `fd` is -1. Never raises SIGPIPE. kInProgress if a
// non-blocking socket is full; kAborted if the peer is gone.
Status SendLink(int socket, const LinkMessage& message, int fd = -1);
// Receives one message. kInProgress if there is none and `wait` is false (or the socket
// non-blocking); kAborted at the end of the link; kInvalidArgument for bytes that are no message.
Result<ReceivedLink> ReceiveLink(int socket, bool wait);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_LINK_H_
