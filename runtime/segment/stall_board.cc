#include "runtime/segment/stall_board.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/base/hash.h"

namespace hvd {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr int kReads = 4;

void CopyText(std::string_view text, std::span<char> to) {
  const size_t length = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

WaitRecord* RecordFor(StallBoard& board, uint32_t thread) {
  WaitRecord* free = nullptr;
  for (WaitRecord& record : board.waits) {
    if (record.id.load(kRelaxed) == 0) {
      free = free == nullptr ? &record : free;
    } else if (record.thread.load(kRelaxed) == thread) {
      return &record;
    }
  }
  return free;
}

void Write(WaitRecord& record, const WaitNote& note) {
  record.key.store(note.key, kRelaxed);
  record.id.store(note.id, kRelaxed);
  record.since_ns.store(note.since_ns, kRelaxed);
  record.thread.store(note.thread, kRelaxed);
  record.set.store(note.set, kRelaxed);
  record.submitted.store(note.submitted ? 1 : 0, kRelaxed);
  record.awaited_count.store(static_cast<uint32_t>(note.awaited.size()), kRelaxed);
  for (size_t i = 0; i < std::min(note.awaited.size(), std::size(record.awaited)); ++i)
    record.awaited[i].store(note.awaited[i], kRelaxed);
  CopyText(note.name, record.name);
  record.seen_ns.store(note.seen_ns, kRelaxed);
}

OverdueWait Copy(const WaitRecord& record) {
  OverdueWait seen;
  seen.key = record.key.load(kRelaxed);
  seen.id = record.id.load(kRelaxed);
  seen.since_ns = record.since_ns.load(kRelaxed);
  seen.seen_ns = record.seen_ns.load(kRelaxed);
  seen.thread = record.thread.load(kRelaxed);
  seen.set = record.set.load(kRelaxed);
  seen.submitted = record.submitted.load(kRelaxed) != 0;
  const size_t count = record.awaited_count.load(kRelaxed);
  for (size_t i = 0; i < std::min(count, std::size(record.awaited)); ++i)
    seen.awaited.push_back(record.awaited[i].load(kRelaxed));
  seen.name.assign(record.name, ::strnlen(record.name, sizeof record.name));
  return seen;
}

}  // namespace

void NoteWait(StallBoard& board, const WaitNote& note) {
  WaitRecord* record = RecordFor(board, note.thread);
  if (record == nullptr) return;
  const uint64_t version = record->version.load(kRelaxed);
  record->version.store(version + 1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  Write(*record, note);
  record->version.store(version + 2, std::memory_order_release);
}

void EndWait(StallBoard& board, uint32_t thread) {
  for (WaitRecord& record : board.waits) {
    if (record.id.load(kRelaxed) != 0 && record.thread.load(kRelaxed) == thread)
      record.id.store(0, std::memory_order_release);
  }
}

void NoteSubmitter(StallBoard& board, uint32_t thread) {
  const uint32_t count = board.submitters.load(kRelaxed);
  if (count < std::size(board.submitter)) board.submitter[count].store(thread, kRelaxed);
  board.submitters.store(count + 1, std::memory_order_release);
}

void NoteFinished(StallBoard& board, uint64_t count, std::string_view name) {
  CopyText(name, board.finished_name);
  board.finished.store(count, std::memory_order_release);
}

void NotePending(StallBoard& board, std::span<const uint64_t> keys) {
  for (size_t i = 0; i < std::min(keys.size(), std::size(board.pending_key)); ++i)
    board.pending_key[i].store(keys[i], kRelaxed);
  board.pending.store(static_cast<uint32_t>(keys.size()), std::memory_order_release);
}

uint64_t KeyOf(int32_t set, std::string_view name) {
  return HashOf(name, HashOf({reinterpret_cast<const char*>(&set), sizeof set}));
}

std::optional<OverdueWait> ReadWait(const WaitRecord& record) {
  for (int read = 0; read < kReads; ++read) {
    const uint64_t before = record.version.load(std::memory_order_acquire);
    if (record.id.load(std::memory_order_acquire) == 0) return std::nullopt;
    if (before % 2 != 0) continue;
    OverdueWait seen = Copy(record);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (record.version.load(kRelaxed) == before && seen.id != 0) return seen;
  }
  return std::nullopt;
}

std::optional<std::vector<uint32_t>> ReadSubmitters(const StallBoard& board) {
  const uint32_t count = board.submitters.load(std::memory_order_acquire);
  if (count > std::size(board.submitter)) return std::nullopt;
  std::vector<uint32_t> threads;
  for (uint32_t i = 0; i < count; ++i) threads.push_back(board.submitter[i].load(kRelaxed));
  return threads;
}

std::optional<std::vector<uint64_t>> ReadPending(const StallBoard& board) {
  const uint32_t count = board.pending.load(std::memory_order_acquire);
  if (count > std::size(board.pending_key)) return std::nullopt;
  std::vector<uint64_t> keys;
  for (uint32_t i = 0; i < count; ++i) keys.push_back(board.pending_key[i].load(kRelaxed));
  return keys;
}

}  // namespace hvd
