#include "runtime/api/engine_options.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/env.h"
#include "runtime/base/hash.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {
namespace {

Status Unreadable(const char* name, const std::string& text, const std::string& wanted) {
  return InvalidArgument("the environment variable " + std::string(name) + " is '" + text +
                         "', which is no " + wanted + "; set it to one or unset it");
}

// Reads a variable into *value, which is left unchanged if the variable is unset or empty.
Status ReadWhole(const char* name, int64_t most, int64_t* value) {
  const std::string text = GetEnv(name).value_or("");
  if (text.empty()) return Status::Ok();
  const auto number = ParseWhole<int64_t>(text);
  if (!number || *number < 0 || *number > most)
    return Unreadable(name, text, Format("whole number from 0 to {}", most));
  *value = *number;
  return Status::Ok();
}

// True for the second of two values; the first is the default if the variable is unset or empty.
Result<bool> ReadChoice(const char* name, std::string_view first, std::string_view second) {
  const std::string text = GetEnv(name).value_or("");
  if (text.empty() || text == first) return false;
  if (text == second) return true;
  return InvalidArgument("the environment variable " + std::string(name) + " is '" + text +
                         "'; set it to " + std::string(first) + " or " + std::string(second) +
                         ", or unset it");
}

Status CheckNumber(const char* name) {
  const std::string text = GetEnv(name).value_or("");
  if (text.empty()) return Status::Ok();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end == '\0' && std::isfinite(number) && number >= 0) return Status::Ok();
  return Unreadable(name, text, "number of at least 0");
}

// Settings of runtimes that negotiate in cycles. There are no cycles here and nothing is fused on
// one host, so they have no effect there; an invalid value is still an error.
Status CheckWithoutEffect() {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  int64_t ignored = 0;
  Status read = HostsSettingsFromEnv().status();
  if (read.ok()) read = OneHostSettingsFromEnv().status();
  // What Horovod's run() sets if no capacity was chosen.
  const bool chosen = GetEnv("HOROVOD_CACHE_CAPACITY").value_or("") != "(None,)";
  if (read.ok() && chosen) read = ReadWhole("HOROVOD_CACHE_CAPACITY", kAny, &ignored);
  if (read.ok()) read = CheckNumber("HOROVOD_CYCLE_TIME");
  return read;
}

}  // namespace

Result<EngineOptions> EngineOptionsFromEnv() {
  constexpr int64_t kMostSeconds = 1'000'000'000;
  EngineOptions options;
  int64_t disabled = 0, warning_s = 60, shutdown_s = 0;
  Status read = ReadWhole("HOROVOD_STALL_CHECK_DISABLE", 1, &disabled);
  if (read.ok()) read = ReadWhole("HOROVOD_STALL_CHECK_TIME_SECONDS", kMostSeconds, &warning_s);
  if (read.ok()) read = ReadWhole("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", kMostSeconds, &shutdown_s);
  if (read.ok()) read = CheckWithoutEffect();
  if (!read.ok()) return read;
  const Result<bool> active = ReadChoice("HOROVOD_JOIN_AVERAGE", "all", "active");
  if (!active.ok()) return active.status();
  options.average_of_active = *active;
  options.stall_warning = std::chrono::seconds(disabled != 0 ? 0 : warning_s);
  options.stall_shutdown = std::chrono::seconds(disabled != 0 ? 0 : shutdown_s);
  return options;
}

Result<HostsSettings> HostsSettingsFromEnv() {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max(), kMostSeconds = 1'000'000'000;
  int64_t fusion_bytes = HostsSettings{}.fusion_bytes, timeout_s = 30;
  constexpr int64_t kMostKib = 1 << 20, kMostPieces = 64;
  int64_t piece_kib = 0, pieces = 0, stripes = 0;
  Status read = ReadWhole("HOROVOD_FUSION_THRESHOLD", kAny, &fusion_bytes);
  if (read.ok()) read = ReadWhole("HOROVOD_GLOO_TIMEOUT_SECONDS", kMostSeconds, &timeout_s);
  if (read.ok()) read = ReadWhole("HVD_INTER_HOST_PIECE_KIB", kMostKib, &piece_kib);
  if (read.ok()) read = ReadWhole("HVD_INTER_HOST_PIECES", kMostPieces, &pieces);
  if (read.ok()) read = ReadWhole("HVD_INTER_HOST_STRIPES", kMostMeshStripes, &stripes);
  if (!read.ok()) return read;
  if (timeout_s == 0) timeout_s = kMostSeconds;
  return HostsSettings{static_cast<uint64_t>(fusion_bytes), std::chrono::seconds(timeout_s),
                       SumCut{static_cast<uint32_t>(piece_kib), static_cast<uint32_t>(pieces),
                              static_cast<uint32_t>(stripes)}};
}

Result<OneHostSettings> OneHostSettingsFromEnv() {
  constexpr int64_t kMostKib = 1 << 20, kMostTurns = 1'000'000, kMostRingKib = 1 << 30;
  int64_t chunk_kib = 0, spins = -1, yields = -1, ring_from_kib = -1;
  Status read = ReadWhole("HVD_CHUNK_KIB", kMostKib, &chunk_kib);
  if (read.ok()) read = ReadWhole("HVD_WAIT_SPINS", kMostTurns, &spins);
  if (read.ok()) read = ReadWhole("HVD_WAIT_YIELDS", kMostTurns, &yields);
  if (read.ok()) read = ReadWhole("HVD_RING_FROM_KIB", kMostRingKib, &ring_from_kib);
  if (!read.ok()) return read;
  OneHostSettings settings{.chunk_kib = static_cast<uint32_t>(chunk_kib),
                           .tuned = GetEnv("HOROVOD_AUTOTUNE") == "1"};
  if (ring_from_kib >= 0) settings.ring_from = static_cast<uint64_t>(ring_from_kib) << 10;
  if (spins >= 0) settings.spins = static_cast<uint32_t>(spins);
  if (yields >= 0) settings.yields = static_cast<uint32_t>(yields);
  return settings;
}

void AddDeviceSettingsFromEnv(CudaBackendOptions* options) {
  if (GetEnv("HOROVOD_GPU_STAGED").value_or("") == "1")
    options->without_nccl = "HOROVOD_GPU_STAGED is 1";
  options->registers_buffers = GetEnv("HOROVOD_GPU_REGISTERED_BUFFERS").value_or("") == "1";
  options->keeps_graphs = GetEnv("HOROVOD_GPU_GRAPHS").value_or("") == "1";
  options->ranges = GetEnv("HOROVOD_NVTX_RANGES").value_or("") == "1";
  options->waits_for_gpu = GetEnv("HOROVOD_ENABLE_ASYNC_COMPLETION").value_or("") == "0";
  const std::string host = GetEnv("NCCL_HOSTID").value_or("");
  if (!host.empty()) options->place_salt = HashOf(host);
}

Result<bool> MpiThreadsDisabled() {
  int64_t disabled = 0;
  Status read = ReadWhole("HOROVOD_MPI_THREADS_DISABLE", 1, &disabled);
  if (!read.ok()) return read;
  return disabled != 0;
}

// The affinity mask, not the machine. A launcher that binds each rank to its own cores passes the
// number of the host's cores, since the mask shows only this rank's share.
uint32_t AllowedCores() {
  int64_t cores = 0;
  if (ReadWhole("HVD_HOST_CORES", 1'000'000, &cores).ok() && cores > 0) {
    return static_cast<uint32_t>(cores);
  }
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

size_t SecondLevelCacheBytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  return static_cast<size_t>(std::max(0L, ::sysconf(_SC_LEVEL2_CACHE_SIZE)));
#else
  return 0;
#endif
}

}  // namespace hvd
