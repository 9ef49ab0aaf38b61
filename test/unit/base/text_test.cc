#include <gtest/gtest.h>

#include "runtime/base/hash.h"
#include "runtime/base/text/hex_text.h"
#include "runtime/base/text/path_text.h"

namespace hvd {
namespace {

TEST(HexText, HasTwoDigitsForEachByte) {
  EXPECT_EQ(HexOf(std::string_view("")), "");
  EXPECT_EQ(HexOf(std::string_view("\0\x7f\xff", 3)), "007fff");
  EXPECT_EQ(HexOf(uint64_t{0x1a2b}), "0000000000001a2b");
}

TEST(PathText, ARelativePathLiesInTheFolder) {
  EXPECT_EQ(PathIn("/a", "b/c"), "/a/b/c");
  EXPECT_EQ(PathIn("/a", "/b"), "/b");
  EXPECT_EQ(PathIn(".", "b"), "./b");
}

TEST(PathText, TheFolderIsAllBeforeTheLastSlash) {
  EXPECT_EQ(FolderOf("/a/b"), "/a");
  EXPECT_EQ(FolderOf("/a"), "/");
  EXPECT_EQ(FolderOf("a/b"), "a");
  EXPECT_EQ(FolderOf("a"), ".");
}

// From the reference of FNV-1a; names of files and keys between processes stand on them.
TEST(Hash, IsTheSameForEver) {
  EXPECT_EQ(HashOf(""), 0xcbf29ce484222325U);
  EXPECT_EQ(HashOf("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(HashOf("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(HashOf("bar", HashOf("foo")), HashOf("foobar"));
}

}  // namespace
}  // namespace hvd
