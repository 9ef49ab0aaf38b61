// Any bytes as the file of a private key: a key that signs, or a problem; and bytes around what
// ssh-keygen writes.
#include "discovery/ssh_key.h"
#include "launcher/channels/ssh/keys/private_key.h"
#include "launcher/channels/ssh/keys/ssh_bytes.h"
#include "test/fuzz/seeds.h"

namespace {

using namespace hvd;

constexpr const char* kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
constexpr const char* kEnd = "\n-----END OPENSSH PRIVATE KEY-----\n";

std::string Armoured(const std::string& body) { return kBegin + EncodeBase64(body) + kEnd; }

// The file that ssh-keygen writes for a key without a passphrase.
std::string Envelope(const std::string& type, const std::string& public_part,
                     const std::string& private_part) {
  std::string blob = SshWriter().String(type).String(public_part).Release();
  std::string secret = SshWriter().Number(7).Number(7).String(type).Release() + private_part;
  return std::string("openssh-key-v1\0", 15) + SshWriter()
                                                   .String("none")
                                                   .String("none")
                                                   .String("")
                                                   .Number(1)
                                                   .String(blob)
                                                   .String(secret)
                                                   .Release();
}

void Look(const std::string& text) {
  PrivateKey::Parsed parsed = PrivateKey::Parse(text);
  Must((parsed.key != nullptr) == (parsed.problem == PrivateKey::Problem::kNone));
  if (parsed.key == nullptr) return;
  Must(!parsed.key->blob().empty());
  (void)parsed.key->Sign("what is to be signed");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::string public_key(32, 'p'), seed(32, 's');
  std::string ed25519 =
      SshWriter().String(public_key).String(seed + public_key).String("me").Release();
  std::string point = "\x04" + std::string(64, 'q');
  std::string ecdsa = SshWriter()
                          .String("nistp256")
                          .String(point)
                          .String(std::string(32, 'd'))
                          .String("me")
                          .Release();
  std::string rsa;
  for (size_t bytes : {256, 3, 256, 128, 128, 128})
    rsa += SshWriter().String(std::string(bytes, '\x11')).Release();
  WriteSeeds(*argc, *argv,
             {"\x01" + Envelope("ssh-ed25519", public_key, ed25519),
              "\x01" + Envelope("ecdsa-sha2-nistp256", point, ecdsa),
              "\x01" + Envelope("ssh-rsa", "n", rsa),
              std::string(1, '\0') + Armoured(Envelope("ssh-ed25519", public_key, ed25519)),
              std::string(1, '\0') +
                  "-----BEGIN EC PRIVATE KEY-----\nMHc=\n-----END EC PRIVATE KEY-----\n",
              std::string(1, '\0') + "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n"});
  return 0;
}

// The first byte says whether the rest is the file or what it holds in base64.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Look(data[0] % 2 == 0 ? bytes : Armoured(bytes));
  return 0;
}
