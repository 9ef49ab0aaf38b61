#include "launcher/channels/ssh/keys/private_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "discovery/ssh_key.h"
#include "launcher/channels/ssh/keys/ssh_bytes.h"

namespace hvd {
namespace {

constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view kMagic("openssh-key-v1\0", 15);
constexpr std::string_view kEd25519 = "ssh-ed25519";
constexpr size_t kSeedBytes = 32;

struct Curve {
  std::string_view key_type;      // of SSH
  std::string_view name;          // of SSH
  std::string_view openssl_name;  // of EVP_PKEY
  std::string_view oid;           // DER
  size_t bytes;
  const EVP_MD* (*digest)();
};
constexpr std::array<Curve, 3> kCurves = {{
    {"ecdsa-sha2-nistp256", "nistp256", "prime256v1", "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
     32, ::EVP_sha256},
    {"ecdsa-sha2-nistp384", "nistp384", "secp384r1", "\x06\x05\x2b\x81\x04\x00\x22", 48,
     ::EVP_sha384},
    {"ecdsa-sha2-nistp521", "nistp521", "secp521r1", "\x06\x05\x2b\x81\x04\x00\x23", 66,
     ::EVP_sha512},
}};

template <typename Where>
const Curve* CurveWhere(Where where) {
  auto found = std::find_if(kCurves.begin(), kCurves.end(), where);
  return found == kCurves.end() ? nullptr : &*found;
}

template <auto Free>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeBy<::EVP_PKEY_free>>;
using Number = std::unique_ptr<BIGNUM, FreeBy<::BN_clear_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// ---- DER, as far as the two key formats need it

std::string Der(uint8_t tag, std::string_view content) {
  std::string length;
  for (size_t rest = content.size(); rest > 0; rest >>= 8)
    length.insert(length.begin(), static_cast<char>(rest & 0xff));
  if (content.size() < 0x80) {
    length = std::string(1, static_cast<char>(content.size()));
  } else {
    length.insert(length.begin(), static_cast<char>(0x80 | length.size()));
  }
  return std::string(1, static_cast<char>(tag)) + length + std::string(content);
}

std::string DerInteger(std::string_view magnitude) {
  std::string mpint = SshWriter().Mpint(magnitude).Release().substr(4);
  return Der(0x02, mpint.empty() ? std::string(1, '\0') : mpint);
}

Number NumberOf(std::string_view magnitude) {
  return Number(::BN_bin2bn(Bytes(magnitude), static_cast<int>(magnitude.size()), nullptr));
}

std::string MagnitudeOf(const BIGNUM* number) {
  std::string bytes(static_cast<size_t>(BN_num_bytes(number)), '\0');
  ::BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  return bytes;
}

KeyPointer FromDer(int kind, const std::string& der) {
  const unsigned char* at = Bytes(der);
  return KeyPointer(::d2i_PrivateKey(kind, nullptr, &at, static_cast<long>(der.size())));
}

// d modulo (prime - 1): a value that RSA stores for speed and OpenSSH's format omits.
std::string Exponent(const BIGNUM* d, const BIGNUM* prime) {
  std::unique_ptr<BN_CTX, FreeBy<::BN_CTX_free>> context(::BN_CTX_new());
  Number less(::BN_dup(prime)), result(::BN_new());
  if (!context || !less || !result || ::BN_sub_word(less.get(), 1) != 1 ||
      ::BN_mod(result.get(), d, less.get(), context.get()) != 1) {
    return "";
  }
  return MagnitudeOf(result.get());
}

KeyPointer ReadRsa(SshReader& fields) {
  std::string_view n = fields.String(), e = fields.String(), d = fields.String(),
                   inverse = fields.String(), p = fields.String(), q = fields.String();
  Number d_number = NumberOf(d), p_number = NumberOf(p), q_number = NumberOf(q);
  if (!fields.ok() || !d_number || !p_number || !q_number) return nullptr;
  std::string content = DerInteger("") + DerInteger(n) + DerInteger(e) + DerInteger(d) +
                        DerInteger(p) + DerInteger(q) +
                        DerInteger(Exponent(d_number.get(), p_number.get())) +
                        DerInteger(Exponent(d_number.get(), q_number.get())) + DerInteger(inverse);
  return FromDer(EVP_PKEY_RSA, Der(0x30, content));
}

KeyPointer ReadEcdsa(SshReader& fields, const Curve& curve) {
  std::string_view name = fields.String(), point = fields.String(), d = fields.String();
  while (d.size() > curve.bytes && d.front() == 0) d.remove_prefix(1);
  if (!fields.ok() || name != curve.name || d.size() > curve.bytes) return nullptr;
  std::string secret = std::string(curve.bytes - d.size(), '\0') + std::string(d);
  std::string public_bits = std::string(1, '\0') + std::string(point);
  return FromDer(EVP_PKEY_EC,
                 Der(0x30, DerInteger("\x01") + Der(0x04, secret) + Der(0xa0, curve.oid) +
                               Der(0xa1, Der(0x03, public_bits))));
}

KeyPointer ReadEd25519(SshReader& fields) {
  fields.String();  // the public key; the secret one begins with its seed
  std::string_view secret = fields.String();
  if (!fields.ok() || secret.size() < kSeedBytes) return nullptr;
  return KeyPointer(
      ::EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, Bytes(secret), kSeedBytes));
}

// ---- the public half, for keys that came as PEM

std::string NumberIn(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (::EVP_PKEY_get_bn_param(key, name, &number) != 1) return "";
  return MagnitudeOf(Number(number).get());
}

std::string EcdsaBlob(EVP_PKEY* key) {
  char group[64] = {};
  size_t length = 0;
  if (::EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                       &length) != 1) {
    return "";
  }
  const Curve* curve = CurveWhere([&](const Curve& c) { return c.openssl_name == group; });
  if (curve == nullptr) return "";
  std::string x = NumberIn(key, OSSL_PKEY_PARAM_EC_PUB_X),
              y = NumberIn(key, OSSL_PKEY_PARAM_EC_PUB_Y);
  if (x.size() > curve->bytes || y.size() > curve->bytes) return "";
  std::string point = "\x04" + std::string(curve->bytes - x.size(), '\0') + x +
                      std::string(curve->bytes - y.size(), '\0') + y;
  return SshWriter().String(curve->key_type).String(curve->name).String(point).Release();
}

std::string BlobOf(EVP_PKEY* key) {
  switch (::EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      return SshWriter()
          .String(kRsaKey)
          .Mpint(NumberIn(key, OSSL_PKEY_PARAM_RSA_E))
          .Mpint(NumberIn(key, OSSL_PKEY_PARAM_RSA_N))
          .Release();
    case EVP_PKEY_ED25519: {
      std::string point(kSeedBytes, '\0');
      size_t length = point.size();
      ::EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(point.data()), &length);
      return SshWriter().String(kEd25519).String(point).Release();
    }
    case EVP_PKEY_EC: return EcdsaBlob(key);
    default: return "";
  }
}

// ---- files

std::string_view WithoutTrailingSpace(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::string WithoutSpace(std::string_view text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept),
               [](char c) { return static_cast<unsigned char>(c) > ' '; });
  return kept;
}

struct Read {
  KeyPointer key;
  PrivateKey::Problem problem = PrivateKey::Problem::kNoKey;
  std::string blob;
};

KeyPointer ReadFields(SshReader& fields, std::string_view type) {
  if (type == kEd25519) return ReadEd25519(fields);
  if (type == kRsaKey) return ReadRsa(fields);
  const Curve* curve = CurveWhere([&](const Curve& c) { return c.key_type == type; });
  return curve == nullptr ? nullptr : ReadEcdsa(fields, *curve);
}

Read ReadOpenssh(std::string_view text) {
  size_t end = text.find(kEnd);
  if (end == std::string_view::npos) return {};
  std::optional<std::string> decoded =
      DecodeBase64(WithoutSpace(text.substr(kBegin.size(), end - kBegin.size())));
  if (!decoded || !decoded->starts_with(kMagic)) return {};
  SshReader file(std::string_view(*decoded).substr(kMagic.size()));
  std::string_view cipher = file.String();
  file.String();  // how the passphrase becomes a key
  file.String();
  uint32_t count = file.Number();
  std::string blob(file.String());
  std::string_view secret = file.String();
  if (!file.ok() || count != 1) return {};
  if (cipher != "none") return {nullptr, PrivateKey::Problem::kEncrypted, blob};
  SshReader fields(secret);
  uint32_t check = fields.Number();
  if (fields.Number() != check) return {};
  std::string_view type = fields.String();
  if (!CanSignWith(type)) return {nullptr, PrivateKey::Problem::kKind, blob};
  return {ReadFields(fields, type), PrivateKey::Problem::kNoKey, blob};
}

// Called if a PEM key is encrypted. Never prompts.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Read ReadPem(std::string_view text) {
  std::unique_ptr<BIO, FreeBy<::BIO_free>> file(
      ::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  bool encrypted = false;
  KeyPointer key(::PEM_read_bio_PrivateKey(file.get(), nullptr, NoPassphrase, &encrypted));
  ::ERR_clear_error();
  if (encrypted) return {nullptr, PrivateKey::Problem::kEncrypted, ""};
  if (!key) return {};
  std::string blob = BlobOf(key.get());
  if (blob.empty()) return {nullptr, PrivateKey::Problem::kKind, ""};
  return {std::move(key), PrivateKey::Problem::kNone, std::move(blob)};
}

// DER's pair of numbers in SSH's encoding.
std::string PairOf(std::string_view der) {
  const unsigned char* at = Bytes(der);
  std::unique_ptr<ECDSA_SIG, FreeBy<::ECDSA_SIG_free>> pair(
      ::d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  if (!pair) return "";
  return SshWriter()
      .Mpint(MagnitudeOf(::ECDSA_SIG_get0_r(pair.get())))
      .Mpint(MagnitudeOf(::ECDSA_SIG_get0_s(pair.get())))
      .Release();
}

const EVP_MD* DigestFor(std::string_view key_type) {
  if (key_type == kRsaKey) return ::EVP_sha512();
  const Curve* curve = CurveWhere([&](const Curve& c) { return c.key_type == key_type; });
  return curve == nullptr ? nullptr : curve->digest();  // ed25519 has its own
}

}  // namespace

struct PrivateKey::Material {
  KeyPointer key;
};

bool CanSignWith(std::string_view key_type) {
  return key_type == kEd25519 || key_type == kRsaKey ||
         CurveWhere([&](const Curve& c) { return c.key_type == key_type; }) != nullptr;
}

std::string LoginBlob(const std::string& blob) {
  if (KeyTypeOf(blob) != kRsaKey) return blob;
  return SshWriter().String(kRsaSha512).Release() + blob.substr(4 + kRsaKey.size());
}

PrivateKey::PrivateKey(std::unique_ptr<Material> material, std::string blob)
    : material_(std::move(material)), blob_(std::move(blob)) {}

PrivateKey::~PrivateKey() = default;

PrivateKey::Parsed PrivateKey::Parse(const std::string& text) {
  std::string_view trimmed = WithoutTrailingSpace(text);
  Read read = trimmed.starts_with(kBegin) ? ReadOpenssh(trimmed) : ReadPem(trimmed);
  if (!read.key) return {nullptr, read.problem, std::move(read.blob)};
  auto material = std::make_unique<Material>(Material{std::move(read.key)});
  Parsed parsed;
  parsed.blob = read.blob;
  parsed.key.reset(new PrivateKey(std::move(material), std::move(read.blob)));
  return parsed;
}

Result<std::string> PrivateKey::Sign(std::string_view data) const {
  std::string type = KeyTypeOf(blob_);
  std::unique_ptr<EVP_MD_CTX, FreeBy<::EVP_MD_CTX_free>> context(::EVP_MD_CTX_new());
  size_t length = 0;
  std::string signature;
  bool ok = context && ::EVP_DigestSignInit(context.get(), nullptr, DigestFor(type), nullptr,
                                            material_->key.get()) == 1;
  ok = ok && ::EVP_DigestSign(context.get(), nullptr, &length, Bytes(data), data.size()) == 1;
  signature.resize(length);
  ok = ok && ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                              &length, Bytes(data), data.size()) == 1;
  ::ERR_clear_error();
  if (!ok) return Internal("a signature could not be made with the key");
  signature.resize(length);
  return type.starts_with("ecdsa") ? PairOf(signature) : signature;
}

}  // namespace hvd
