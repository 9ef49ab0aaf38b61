#include "runtime/net/sealed_records.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/bytes.h"

namespace hvd {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr int kTagBytes = 16;
constexpr size_t kNonceBytes = 12;

const unsigned char* In(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* Out(char* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

Status NotGenuine() {
  return InvalidArgument(
      "the bytes that arrived are not those that its agent sent; look for a program or a device "
      "between the two hosts that changes them");
}

}  // namespace

void RecordCipher::Free::operator()(evp_cipher_ctx_st* context) const {
  ::EVP_CIPHER_CTX_free(context);  // wipes the key
}

RecordCipher::RecordCipher(std::string_view key, bool seals)
    : context_(::EVP_CIPHER_CTX_new()), seals_(seals) {
  const bool ready = context_ != nullptr && key.size() == kRecordKeyBytes &&
                     ::EVP_CipherInit_ex(context_.get(), ::EVP_aes_256_gcm(), nullptr, In(key),
                                         nullptr, seals ? 1 : 0) == 1;
  if (!ready) context_.reset();
}

bool RecordCipher::Run(std::string_view header, std::string_view in, char* out, char* tag) {
  if (context_ == nullptr) return false;
  std::array<unsigned char, kNonceBytes> nonce{};
  std::memcpy(nonce.data(), &next_, sizeof next_);
  ++next_;
  EVP_CIPHER_CTX* context = context_.get();
  int bytes = 0;
  const int length = static_cast<int>(in.size());
  bool good = ::EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, nonce.data(), -1) == 1 &&
              ::EVP_CipherUpdate(context, nullptr, &bytes, In(header),
                                 static_cast<int>(header.size())) == 1 &&
              ::EVP_CipherUpdate(context, Out(out), &bytes, In(in), length) == 1;
  if (good && !seals_)
    good = ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kTagBytes, tag) == 1;
  good = good && ::EVP_CipherFinal_ex(context, Out(out) + length, &bytes) == 1;
  if (good && seals_)
    good = ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1;
  return good;
}

Status RecordSealer::Seal(std::string_view plain, std::string& wire) {
  while (!plain.empty()) {
    const std::string_view part = plain.substr(0, kMostRecordBytes);
    plain.remove_prefix(part.size());
    ByteWriter writer;
    const std::string header = writer.Put(static_cast<uint32_t>(part.size())).Take();
    const size_t start = wire.size();
    wire.append(header).resize(start + part.size() + kRecordOverhead);
    char* sealed = wire.data() + start + kLengthBytes;
    if (!cipher_.Run(header, part, sealed, sealed + part.size())) {
      wire.resize(start);
      return Internal("libcrypto does not seal a message with AES-256-GCM");
    }
  }
  return Status::Ok();
}

Status RecordOpener::Open(std::string_view wire, std::string& plain) {
  if (broken_) return NotGenuine();
  while (true) {
    size_t wanted = kLengthBytes;
    if (held_.size() >= kLengthBytes) {
      const auto length = ByteReader(held_).Get<uint32_t>();
      broken_ = length == 0 || length > kMostRecordBytes;
      if (broken_) return NotGenuine();
      wanted = length + kRecordOverhead;
    }
    const std::string_view part = wire.substr(0, wanted - held_.size());
    held_.append(part);
    wire.remove_prefix(part.size());
    if (held_.size() < wanted) return Status::Ok();
    if (wanted == kLengthBytes) continue;
    const size_t length = wanted - kRecordOverhead, start = plain.size();
    plain.resize(start + length);
    const std::string_view sealed = std::string_view(held_).substr(kLengthBytes, length);
    broken_ = !cipher_.Run(std::string_view(held_).substr(0, kLengthBytes), sealed,
                           plain.data() + start, held_.data() + kLengthBytes + length);
    held_.clear();
    if (broken_) {
      plain.resize(start);  // unauthenticated bytes are never shown to a caller
      return NotGenuine();
    }
  }
}

}  // namespace hvd
