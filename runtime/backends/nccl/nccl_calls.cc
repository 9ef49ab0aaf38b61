#include "runtime/backends/nccl/nccl_calls.h"

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::string_view AdviceForNccl(NcclResult result) {
  switch (result) {
    case kNcclCudaError: return "a call of CUDA failed inside NCCL: look at nvidia-smi";
    case kNcclSystemError:
      return "look at the network between the hosts (NCCL_SOCKET_IFNAME), the size of /dev/shm and "
             "the limit of open files";
    case kNcclInvalidUsage:
      return "each rank needs a GPU of its own and the same version of NCCL as the others";
    case kNcclRemoteError:
    case kNcclTimeout: return "another rank may be gone: look at what the others say";
    default: return "set NCCL_DEBUG=INFO to see what NCCL did before";
  }
}

std::string_view TextOr(const char* text, std::string_view otherwise) {
  return text == nullptr || *text == '\0' ? otherwise : std::string_view(text);
}

}  // namespace

std::string NameOf(const NcclMember& member) {
  return Format("rank {} on {} (member {} of {} of {})", member.rank, member.device, member.index,
                member.size, member.set);
}

Code CodeOfNcclError(NcclResult result) {
  switch (result) {
    case kNcclSuccess: return Code::kOk;
    case kNcclInProgress: return Code::kInProgress;
    case kNcclSystemError:
    case kNcclRemoteError:
    case kNcclTimeout: return Code::kAborted;
    case kNcclInvalidUsage: return Code::kUnsupported;
    default: return Code::kInternal;
  }
}

Status NcclFailure(const NcclApi& api, const NcclMember& member, const NcclAnswer& answer,
                   NcclCommHandle comm) {
  std::string text = Format("{}: {} answered {} ({})", NameOf(member), answer.symbol,
                            TextOr(api.get_error_string(answer.result), "an error"), answer.result);
  const std::string_view last = TextOr(api.get_last_error(comm), "");
  if (!last.empty()) text += ", and NCCL's last error is '" + std::string(last) + "'";
  return {CodeOfNcclError(answer.result), text + "; " + std::string(AdviceForNccl(answer.result))};
}

}  // namespace hvd
