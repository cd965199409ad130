#include "golden/pack_inspection.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "attn/error.h"
#include "golden/case_index.h"
#include "golden/error_source.h"
#include "golden/input_file.h"
#include "golden/pack_index.h"
#include "golden/pack_manifest.h"
#include "golden/pack_sums.h"
#include "golden/unfinished_pack.h"

namespace attn {
namespace golden {
namespace {

namespace fs = std::filesystem;

// No file of a pack comes near; nothing larger is read.
constexpr std::int64_t kMaxFileBytes = std::int64_t{256} << 20;

bool is_case_file(std::string_view file) { return file.ends_with(kCaseSuffix); }

class Inspection {
 public:
  explicit Inspection(const fs::path& folder) : folder_(folder) { pack_.path = folder; }

  PackReport result() {
    using Step = void (Inspection::*)();
    for (const Step step :
         {&Inspection::check_names, &Inspection::check_digests, &Inspection::read_manifest,
          &Inspection::read_index, &Inspection::read_relations, &Inspection::check_counts,
          &Inspection::check_cases, &Inspection::check_notes, &Inspection::check_relations}) {
      (this->*step)();
      if (!report_.damage.empty()) return std::move(report_);
    }
    report_.pack = std::move(pack_);
    return std::move(report_);
  }

 private:
  void damaged(std::string_view file, std::string reason) {
    report_.damage.push_back({single_line(std::string(file)), std::move(reason)});
  }

  // An Error of `body` is damage of `file`.
  template <class Body>
  void expect_good(std::string_view file, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      damaged(file, error.what());
    }
  }

  // Names of the regular files there.
  std::set<std::string> list_files() {
    std::set<std::string> files;
    try {
      for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
        const std::string file = entry.path().filename();
        files.insert(file);
        if (entry.symlink_status().type() != fs::file_type::regular) {
          damaged(file, "is not a regular file");
        }
      }
    } catch (const fs::filesystem_error& error) {
      throw Error(fmt::format("{}: cannot be listed: {}", single_line(folder_.string()),
                              error.code().message()));
    }
    return files;
  }

  void expect_size(std::string_view file) const {
    const std::int64_t size = InputFile(folder_ / file).size();
    if (size > kMaxFileBytes) {
      throw Error(fmt::format("holds {} bytes, at most {} are allowed", size, kMaxFileBytes));
    }
  }

  void check_names() {
    const std::set<std::string> files = list_files();
    if (!report_.damage.empty()) return;
    if (!files.contains(std::string(kSumsFile))) return damaged(kSumsFile, "is missing");
    expect_good(kSumsFile, [&] {
      expect_size(kSumsFile);
      sums_ = parse_sums(read_text(folder_ / kSumsFile));
    });
    if (!report_.damage.empty()) return;
    for (const std::string& file : files) {
      if (file != kSumsFile && !sums_.contains(file)) damaged(file, "is not in SHA256SUMS");
    }
    for (const auto& [file, digest] : sums_) {
      if (!files.contains(file)) damaged(file, "is missing");
      report_.case_files += is_case_file(file) ? 1 : 0;
    }
    check_kinds();
  }

  void check_kinds() {
    constexpr std::string_view kAlways[] = {kManifestFile, kIndexFile, kRelationsFile, kLicenseFile,
                                            kReadmeFile};
    for (const std::string_view file : kAlways) {
      if (!sums_.contains(std::string(file))) damaged(file, "is not in SHA256SUMS");
    }
    for (const auto& [file, digest] : sums_) {
      if (!is_case_file(file) &&
          std::find(std::begin(kAlways), std::end(kAlways), file) == std::end(kAlways)) {
        damaged(file, "is no file of a pack");
      }
    }
  }

  void check_digests() {
    for (const auto& [file, digest] : sums_) {
      expect_good(file, [&, &name = file, &expected = digest] {
        expect_size(name);
        if (sha256_of_file(folder_ / name) != expected) throw Error("sha256 differs");
      });
    }
  }

  // Once more with its digest: what is interpreted are the bytes that were checked.
  std::vector<std::byte> checked_bytes(const std::string& file) const {
    std::vector<std::byte> bytes = read_bytes(folder_ / file);
    if (sha256_of(bytes) != sums_.at(file)) throw Error("changed while it was checked");
    return bytes;
  }

  std::string checked_text(std::string_view file) const {
    const std::vector<std::byte> bytes = checked_bytes(std::string(file));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void read_manifest() {
    expect_good(kManifestFile, [&] {
      const JsonDocument document(checked_text(kManifestFile), "manifest");
      pack_.manifest = parse_manifest(document.root());
    });
  }

  void read_index() {
    expect_good(kIndexFile, [&] {
      for_each_line(checked_text(kIndexFile), std::string(kIndexFile), [&](const JsonNode& line) {
        PackCase one = parse_pack_line(line, pack_.manifest.version);
        if (!pack_.cases.empty() && pack_.cases.back().row.id >= one.row.id) {
          line.at("id").fail(fmt::format("an id after {}", pack_.cases.back().row.id));
        }
        expect_file(line, one);
        pack_.cases.push_back(std::move(one));
      });
    });
    if (report_.damage.empty()) check_index_is_whole();
  }

  void read_relations() {
    expect_good(kRelationsFile, [&] {
      std::set<std::string> ids;
      for (const PackCase& one : pack_.cases) ids.insert(one.row.id);
      for_each_line(
          checked_text(kRelationsFile), std::string(kRelationsFile),
          [&](const JsonNode& line) { pack_.relations.push_back(parse_relation(line, ids)); });
    });
  }

  void expect_file(const JsonNode& line, PackCase& one) const {
    const auto sum = sums_.find(one.row.file);
    if (sum == sums_.end()) line.at("file").fail("a file of the folder");
    if (sum->second != one.row.sha256) {
      line.at("sha256").fail(fmt::format("{}, that of the file", in_quotes(sum->second)));
    }
    one.bytes = InputFile(folder_ / one.row.file).size();
  }

  void check_index_is_whole() {
    std::set<std::string> files;
    for (const PackCase& one : pack_.cases) files.insert(one.row.file);
    for (const auto& [file, digest] : sums_) {
      if (is_case_file(file) && !files.contains(file)) damaged(file, "is not in index.jsonl");
    }
    for (const WithdrawnCase& withdrawn : pack_.manifest.withdrawn) {
      if (files.contains(withdrawn.id + std::string(kCaseSuffix))) {
        damaged(kManifestFile, fmt::format("withdrawn {} is in index.jsonl", withdrawn.id));
      }
    }
  }

  void check_counts() {
    const PackCounts& said = pack_.manifest.counts;
    const PackCounts counted = counts_of(pack_.cases, pack_.relations.size());
    check_count("cases", said.cases, counted.cases);
    check_count("bytes", said.bytes, counted.bytes);
    check_count("relations", said.relations, counted.relations);
    check_table("by_op", said.by_op, counted.by_op);
    check_table("by_variant", said.by_variant, counted.by_variant);
    check_table("by_result", said.by_result, counted.by_result);
  }

  void check_count(const std::string& what, std::int64_t said, std::int64_t counted) {
    if (said != counted) {
      damaged(kManifestFile,
              fmt::format("counts.{} is {}, the folder has {}", what, said, counted));
    }
  }

  void check_table(const std::string& what, std::map<std::string, std::int64_t> said,
                   std::map<std::string, std::int64_t> counted) {
    for (const auto& [key, count] : said) counted.try_emplace(key, 0);
    for (const auto& [key, count] : counted) {
      check_count(fmt::format("{}.{}", what, key), said[key], count);
    }
  }

  void check_cases() {
    for (const PackCase& one : pack_.cases) {
      expect_good(one.row.file, [&] { expect_case_of(one, checked_bytes(one.row.file)); });
    }
  }

  void check_notes() {
    std::set<std::string> words;
    for (const PackCase& one : pack_.cases) {
      words.insert(one.flags.begin(), one.flags.end());
      words.insert(one.rulings.begin(), one.rulings.end());
    }
    for (const std::string& word : words) {
      if (!pack_.manifest.notes.contains(word)) {
        damaged(kManifestFile, fmt::format("notes has nothing about {}", in_quotes(word)));
      }
    }
  }

  // A relation that cannot fail would count as one more pass.
  static void expect_rows_to_compare(const CaseRelation& relation) {
    const auto is_empty = [](const CaseRelation::Rows& rows) { return rows.count == 0; };
    if (relation.rows.size() < 2 || std::ranges::any_of(relation.rows, is_empty)) {
      throw Error(fmt::format("{}: compares no rows", in_quotes(relation.about)));
    }
  }

  // The rows are there, and their expected values are the same bits.
  void check_relations() {
    for (const CaseRelation& relation : pack_.relations) {
      expect_good(kRelationsFile, [&] {
        expect_rows_to_compare(relation);
        std::vector<std::byte> first;
        for (const CaseRelation::Rows& rows : relation.rows) {
          const CaseFile file =
              CaseFile::parse(checked_bytes(rows.id + std::string(kCaseSuffix)), rows.id);
          const std::span<const std::byte> bytes = rows_of_out(file, rows);
          if (&rows == &relation.rows.front()) first.assign(bytes.begin(), bytes.end());
          if (!std::ranges::equal(bytes, first)) {
            throw Error(fmt::format("{}: rows of {} differ from those of {}",
                                    in_quotes(relation.about), rows.id, relation.rows[0].id));
          }
        }
      });
    }
  }

  const fs::path& folder_;
  PackReport report_;
  Pack pack_;
  Sums sums_;
};

}  // namespace

PackReport inspect_folder(const std::filesystem::path& folder) {
  return Inspection(folder).result();
}

}  // namespace golden

PackReport verify_pack(const std::filesystem::path& folder) {
  golden::expect_finished(folder);
  return golden::inspect_folder(folder);
}

Pack open_pack(const std::filesystem::path& folder) {
  PackReport report = verify_pack(folder);
  if (report.pack) return std::move(*report.pack);
  const PackDamage& damage = report.damage.front();
  throw Error(
      fmt::format("{}: {}", golden::single_line((folder / damage.file).string()), damage.reason));
}

}  // namespace attn
