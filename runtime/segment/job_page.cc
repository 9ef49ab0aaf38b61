#include "runtime/segment/job_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>

#include "runtime/base/align.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint64_t kMagic = 0x31306567'61704448;  // "HDpage01"
constexpr size_t kPage = 4096;
constexpr size_t kRingBytes = 256 * 1024;
constexpr size_t kTraceBytes = kPage + 256 * 1024;  // a page, and a power of two of records
constexpr uint32_t kMaxRanks = 4096;

static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(PageHeader) <= kPage);

size_t RingOffset(uint32_t local_size) {
  return RoundUp(sizeof(RankBlock) + local_size * sizeof(std::atomic<uint64_t>), kPage);
}

size_t BlockStride(uint32_t local_size) {
  return RingOffset(local_size) + kRingBytes + kTraceBytes;
}

}  // namespace

size_t JobPage::BytesFor(uint32_t local_size) {
  return kPage + local_size * BlockStride(local_size);
}

JobPage JobPage::Format(std::byte* base, uint32_t local_size, uint64_t generation) {
  HVD_CHECK(local_size >= 1 && local_size <= kMaxRanks, local_size, kMaxRanks);
  auto* header = new (base) PageHeader{};
  header->layout_version = kLayoutVersion;
  header->local_size = local_size;
  header->generation = generation;
  header->total_bytes = BytesFor(local_size);
  header->block_offset = kPage;
  header->block_stride = BlockStride(local_size);
  header->ring_offset = RingOffset(local_size);
  header->ring_bytes = kRingBytes;
  header->trace_offset = header->ring_offset + kRingBytes;
  header->trace_bytes = kTraceBytes;
  header->magic = kMagic;
  return JobPage(base);
}

Result<JobPage> JobPage::View(std::byte* base, size_t bytes) {
  const auto* header = reinterpret_cast<const PageHeader*>(base);
  if (bytes < sizeof(PageHeader) || header->magic != kMagic) {
    return Internal("the shared memory from the agent is not a job page");
  }
  if (header->layout_version != kLayoutVersion) {
    return Internal(
        hvd::Format("the agent lays out job pages in version {}, this libhvd.so in version {}; use "
                    "hvdrun and libhvd.so of one release",
                    header->layout_version, kLayoutVersion));
  }
  const uint32_t ranks = header->local_size;
  const bool laid_out =
      ranks >= 1 && ranks <= kMaxRanks && header->total_bytes == BytesFor(ranks) &&
      header->block_offset == kPage && header->block_stride == BlockStride(ranks) &&
      header->ring_offset == RingOffset(ranks) && header->ring_bytes == kRingBytes &&
      header->trace_offset == RingOffset(ranks) + kRingBytes && header->trace_bytes == kTraceBytes;
  if (!laid_out) return Internal("the job page from the agent is damaged");
  if (header->total_bytes > bytes) return Internal("the job page from the agent is cut short");
  return JobPage(base);
}

JobPage::JobPage(std::byte* base) : base_(base) {
  const PageHeader& h = header();
  ranks_ = h.local_size;
  block_offset_ = h.block_offset;
  block_stride_ = h.block_stride;
  ring_offset_ = h.ring_offset;
  ring_bytes_ = h.ring_bytes;
  trace_bytes_ = h.trace_bytes;
}

std::string JobPage::broken_text() const {
  const char* text = header().broken_text;
  return {text, strnlen(text, sizeof header().broken_text)};
}

void JobPage::Break(std::string_view sentence) const {
  PageHeader& h = header();
  if (broken()) return;
  size_t length = std::min(sentence.size(), sizeof h.broken_text - 1);
  std::memcpy(h.broken_text, sentence.data(), length);
  h.broken_text[length] = '\0';
  h.broken.store(1, std::memory_order_release);
  for (uint32_t r = 0; r < ranks_; ++r) RingAll(r);
}

// The operations of both sides are totally ordered (sequentially consistent): a rank that has
// counted a commit and then saw no hold has done so before this store, and the counts read
// afterwards include its commit.
void JobPage::HoldCommits() const { header().hold.store(1, std::memory_order_seq_cst); }

uint64_t JobPage::MostCommits() const {
  uint64_t most = 0;
  for (uint32_t r = 0; r < ranks_; ++r) most = std::max(most, Commits(r));
  return most;
}

void JobPage::ActAt(uint64_t commit, uint32_t update, uint32_t grace_ms) const {
  HVD_CHECK(commit > 0 && update != 0, commit, update);
  PageHeader& h = header();
  h.update.store(update, std::memory_order_relaxed);
  h.stop_grace_ms.store(grace_ms, std::memory_order_relaxed);
  h.act_at.store(commit, std::memory_order_release);
  for (uint32_t r = 0; r < ranks_; ++r) RingAll(r);
}

void JobPage::RingAll(uint32_t r) const {
  Ring(rank(r).bell);
  Ring(rank(r).runtime_bell);
}

void Ring(Doorbell& bell) {
  // Pairs with the fence of a sleeper between setting `sleeping` and checking again: one of the two
  // sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (bell.sleeping.load(std::memory_order_relaxed) == 0) return;
  bell.word.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &bell.word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SleepOn(Doorbell& bell, uint32_t expected, int64_t timeout_ns) {
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  ::syscall(SYS_futex, &bell.word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

}  // namespace hvd
