#include "launcher/bundle/tar_archive.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr size_t kBlock = 512;
constexpr uint64_t kTime = 315532800;  // 1980: tar warns of earlier files

// Numbers are octal digits with a NUL behind them.
struct Header {
  char name[100];
  char mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
  char type;
  char link[100];
  char magic[6], version[2];
  char owner[32], group[32], device_major[8], device_minor[8];
  char prefix[155];
  char padding[12];
};
static_assert(sizeof(Header) == kBlock);

template <size_t N>
void PutNumber(char (&field)[N], uint64_t value) {
  for (size_t i = N - 1; i-- > 0; value /= 8) field[i] = static_cast<char>('0' + value % 8);
}

template <size_t N>
bool PutText(char (&field)[N], std::string_view text) {
  if (text.size() > N) return false;
  std::memcpy(field, text.data(), text.size());
  return true;
}

// A long path is cut at a "/" into prefix and name.
bool PutPath(Header& header, std::string_view path) {
  if (PutText(header.name, path)) return true;
  size_t least = path.size() - std::min(path.size(), sizeof header.name + 1);
  size_t cut = path.find('/', least);
  return cut != path.npos && PutText(header.prefix, path.substr(0, cut)) &&
         PutText(header.name, path.substr(cut + 1));
}

}  // namespace

Status TarArchive::Add(std::string_view path, uint32_t mode, std::string_view bytes) {
  Header header{};
  if (path.empty() || !PutPath(header, path))
    return InvalidArgument("the path " + Quoted(path, kMaxShownPath) + " is too long for tar");
  PutNumber(header.mode, mode);
  PutNumber(header.uid, 0);
  PutNumber(header.gid, 0);
  PutNumber(header.size, bytes.size());
  PutNumber(header.mtime, kTime);
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  std::memset(header.checksum, ' ', sizeof header.checksum);
  char block[kBlock];
  std::memcpy(block, &header, kBlock);
  uint64_t sum = 0;
  for (unsigned char byte : block) sum += byte;
  char digits[7] = {};
  PutNumber(digits, sum);
  std::memcpy(block + offsetof(Header, checksum), digits, sizeof digits);
  bytes_.append(block, kBlock).append(bytes);
  bytes_.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  return Status::Ok();
}

std::string TarArchive::Take() {
  bytes_.append(2 * kBlock, '\0');
  return std::exchange(bytes_, {});
}

}  // namespace hvd
