#include "runtime/backends/nccl/nccl_id.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hvd {
namespace {

constexpr std::string_view kIdMark = "id ";
constexpr std::string_view kFailureMark = "failed ";
constexpr std::string_view kHexDigits = "0123456789abcdef";

Result<std::optional<NcclUniqueId>> MakeId(const NcclApi& api, const NcclMember& member,
                                           KvStore& store, const std::string& key) {
  NcclUniqueId id{};
  const NcclAnswer answer{api.get_unique_id.symbol, api.get_unique_id(&id)};
  Status failure;
  if (answer.result != kNcclSuccess) failure = NcclFailure(api, member, answer, nullptr);
  if (member.size > 1) {
    Status put = store.Put(key, failure.ok() ? EncodeNcclId(id) : EncodeNcclIdFailure(failure));
    if (failure.ok() && !put.ok()) {
      return Status(put.code(),
                    NameOf(member) + " cannot give the id of NCCL to the others: " + put.message());
    }
  }
  if (!failure.ok()) return failure;
  return std::optional(id);
}

}  // namespace

std::string EncodeNcclId(const NcclUniqueId& id) {
  std::string text(kIdMark);
  for (const char byte : id.bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kHexDigits[value / 16];
    text += kHexDigits[value % 16];
  }
  return text;
}

std::string EncodeNcclIdFailure(const Status& why) {
  return (std::string(kFailureMark) + why.message()).substr(0, kMaxKvValue);
}

Result<NcclUniqueId> DecodeNcclId(const std::string& value) {
  if (value.starts_with(kFailureMark)) return Aborted(value.substr(kFailureMark.size()));
  const Status malformed =
      Internal("the store has no id of NCCL, but '" + value.substr(0, 80) + "'");
  if (!value.starts_with(kIdMark)) return malformed;
  const std::string_view digits = std::string_view(value).substr(kIdMark.size());
  NcclUniqueId id{};
  if (digits.size() != 2 * sizeof(id.bytes)) return malformed;
  for (size_t i = 0; i < sizeof(id.bytes); ++i) {
    const size_t high = kHexDigits.find(digits[2 * i]), low = kHexDigits.find(digits[2 * i + 1]);
    if (std::max(high, low) >= kHexDigits.size()) return malformed;
    id.bytes[i] = static_cast<char>(high * 16 + low);
  }
  return id;
}

Result<std::optional<NcclUniqueId>> ObtainNcclId(const NcclApi& api, const NcclMember& member,
                                                 KvStore& store, const std::string& key,
                                                 Duration wait) {
  if (member.index == 0) return MakeId(api, member, store, key);
  const Result<std::string> value = store.Get(key, wait);
  if (value.status().code() == Code::kInProgress) return std::optional<NcclUniqueId>();
  Status failure = value.status();
  if (failure.ok()) {
    const Result<NcclUniqueId> id = DecodeNcclId(*value);
    if (id.ok()) return std::optional(*id);
    failure = id.status();
  }
  return Status(failure.code(), NameOf(member) + " gets no id of NCCL: " + failure.message());
}

}  // namespace hvd
