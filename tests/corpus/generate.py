#!/usr/bin/env python3
"""Writes the corpus of malformed files and expected.tsv, the message that each must give ("ok": it must be read).

Each is an input that broke a parser somewhere; the comment says what is wrong with it. Run from any folder with any
Python 3; the files are committed, so that nobody needs to.
"""
import base64
import pathlib
import struct
import zlib

HERE = pathlib.Path(__file__).parent
EXPECTED = []


def add(name, data, message):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    EXPECTED.append((name, message))


def ply(body, elements="element vertex 3\nproperty float x\nproperty float y\nproperty float z\n", kind="ascii"):
    header = f"ply\nformat {kind} 1.0\n{elements}end_header\n".encode()
    return header + (body if isinstance(body, bytes) else body.encode())


ROWS = "0 0 0\n1 0 0\n0 1 0\n"
XYZ = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)
FACE = "element face 1\nproperty list uchar int vertex_indices\n"
V3 = "element vertex 3\nproperty float x\nproperty float y\nproperty float z\n"

for format in ["ply", "xyz", "pts", "csv", "obj", "off", "stl", "pcd", "las", "kitti", "npy", "npz", "safetensors", "png", "jpeg"]:
    extension = {"kitti": "bin", "jpeg": "jpg"}.get(format, format)
    message = {"kitti": "holds no points", "png": "the file ends in the PNG header", "jpeg": "the file ends in the middle"}
    add(f"{format}/empty.{extension}", b"", message.get(format, "empty"))

# --- PLY
add("ply/one_byte.ply", b"p", 'expected "ply"')
add("ply/header_only.ply", ply(""), "3 rows of element")
add("ply/header_cut.ply", "ply\nformat ascii 1.0\nelement vertex 3\n", "ends inside the header")
add("ply/huge_count.ply", ply("0 0 0\n", V3.replace("vertex 3", "vertex 4000000000")), "at most")
add("ply/large_count.ply", ply(XYZ, V3.replace("vertex 3", "vertex 2000000000"), "binary_little_endian"), "the file has 36 left")
add("ply/overflow_count.ply", ply("", V3.replace("vertex 3", "vertex 99999999999999999999")), "expected a count")
add("ply/negative_count.ply", ply("", V3.replace("vertex 3", "vertex -1")), "expected a count")
add("ply/row_short.ply", ply("0 0 0\n1 0\n0 1 0 0\n"), "expected 3 numbers, found 2")
add("ply/row_long.ply", ply("0 0 0\n1 0 0 7\n0 1 0\n"), "found more")
add("ply/body_short_ascii.ply", ply("0 0 0\n1 0.00000000000 0\n"), "ends after 2 of 3 rows")
add("ply/body_short_binary.ply", ply(XYZ[:30], V3, "binary_little_endian"), "the file has 30 left")
add("ply/word_for_number.ply", ply("0 0 0\n1 zero 0\n0 1 0\n"), 'expected a number for y, found "zero"')
add("ply/list_count_float.ply", ply(ROWS + "3 0 1 2\n", V3 + "element face 1\nproperty list float int vertex_indices\n"), "must be an integer type")
add("ply/list_count_negative.ply", ply(XYZ + struct.pack("<i", -3), V3 + "element face 1\nproperty list int int vertex_indices\n", "binary_little_endian"), "has -3 items")
add("ply/list_count_huge.ply", ply(XYZ + struct.pack("<I", 4000000000), V3 + "element face 1\nproperty list uint int vertex_indices\n", "binary_little_endian"), "has 4000000000 items")
add("ply/list_past_end.ply", ply(XYZ + struct.pack("<I3i", 1000, 0, 1, 2), V3 + "element face 1\nproperty list uint int vertex_indices\n", "binary_little_endian"), "items of a list: ")
add("ply/list_in_vertex.ply", ply("0 0 0 2 5 6\n1 0 0 0\n0 1 0 1 7\n", V3 + "property list uchar int extra\n"), "ok")
add("ply/list_in_vertex_binary.ply", ply(b"".join(struct.pack("<3fB", i, 0, 0, i) + b"\1" * i for i in range(3)), V3 + "property list uchar uchar extra\n", "binary_little_endian"), "ok")
add("ply/face_index_high.ply", ply(ROWS + "3 0 1 3\n", V3 + FACE), "uses vertex 3")
add("ply/face_index_negative.ply", ply(ROWS + "3 0 1 -1\n", V3 + FACE), "uses vertex -1")
add("ply/face_cut.ply", ply(ROWS + "3 0 1\n", V3 + FACE), "has 2 of 3 items")
add("ply/type_unknown.ply", ply("0 0 0\n", V3.replace("float y", "quad y")), 'unknown property type "quad"')
add("ply/property_twice.ply", ply("0 0 0\n", V3.replace("float y", "float x")), "twice")
add("ply/element_twice.ply", ply(ROWS, V3 + V3), "twice")
add("ply/no_format.ply", "ply\n" + V3 + "end_header\n" + ROWS, "no format line")
add("ply/format_unknown.ply", ply(ROWS, kind="binary_middle_endian"), "unknown format")
add("ply/no_vertices.ply", ply("", V3.replace("vertex 3", "vertex 0")), "ok")
add("ply/no_vertex_element.ply", ply("", ""), "no element vertex")
add("ply/no_z.ply", ply("0 0\n", "element vertex 1\nproperty float x\nproperty float y\n"), "no column named z")
add("ply/property_first.ply", "ply\nformat ascii 1.0\nproperty float x\nend_header\n", "before any element")
add("ply/aliases_crlf.ply", ply(ROWS, V3.replace("float x", "float32 x").replace("float y", "float64 y")).replace(b"\n", b"\r\n"), "ok")
add("ply/big_endian.ply", ply(struct.pack(">9f", *range(9)), V3, "binary_big_endian"), "ok")
add("ply/comments.ply", ply(ROWS, "comment hello\nobj_info x\n" + V3), "ok")
add("ply/unknown_elements.ply", ply("7 8\n" + ROWS + "3 1 2 3\n", "element camera 1\nproperty float a\nproperty int b\n" + V3 + "element strip 1\nproperty list int int vertex_indices\n"), "ok")
add("ply/no_final_newline.ply", ply(ROWS[:-1]), "ok")
add("ply/long_token.ply", ply("0 0 " + "9" * 2000 + "x\n1 0 0\n0 1 0\n"), "expected a number for z")
add("ply/long_number.ply", ply("0 0 0.123456789012345678901234567890123\n1 0 0\n0 1 0\n"), "ok")
add("ply/number_overflow.ply", ply("0 0 1e400\n1 0 0\n0 1 0\n"), 'expected a number for z, found "1e400"')
add("ply/uchar_out_of_range.ply", ply("0 0 0 256\n1 0 0 1\n0 1 0 2\n", V3 + "property uchar red\n"), "is no uint8 for red")
add("ply/nan.ply", ply("nan 0 0\n1 inf 0\n0 1 -inf\n"), "ok")
add("ply/wide_numbers.ply", ply("1e30 0 0\n1 1e-40 0\n0 1 -1e30\n"), "ok")
add("ply/binary_garbage.ply", b"ply\n" + bytes(range(256)) * 2, "expected a header keyword")
add("ply/not_ply.ply", b"\x7fELF" + bytes(60), 'expected "ply"')
add("ply/polygon.ply", ply(ROWS + "1 1 0\n4 0 1 3 2\n", V3.replace("vertex 3", "vertex 4") + FACE), "ok")

# --- text tables
add("xyz/one_byte.xyz", b"1", "expected 3 numbers, found 1")
add("xyz/two_columns.xyz", "1 2\n3 4\n", "expected 3 numbers, found 2")
add("xyz/ragged.xyz", "0 0 0\n1 1 1 1\n", "found more")
add("xyz/ragged_short.xyz", "0 0 0 5\n1 1 1\n", "expected 4 numbers, found 3")
add("xyz/words.xyz", "hello world again\n", 'expected a number for x, found "hello"')
add("xyz/comments_only.xyz", "# nothing\n\n// here\n", "holds no points")
add("xyz/header_only.csv", "x,y,z\n", "holds no points")
add("xyz/nul.xyz", b"0 0 0\n1 \0 2\n", "expected a number for y")
add("xyz/decimal_comma.xyz", "0,5 1,5 2,5\n", "line 1: decimal commas: \"0,5\"")  # not six columns
add("xyz/twice_named.csv", "x,y,z,a,a\n0,0,0,1,2\n", "two columns are named")
add("xyz/no_final_newline.xyz", "0 0 0\n1 1 1", "ok")
add("xyz/crlf.xyz", "0 0 0\r\n1 1 1\r\n", "ok")
add("xyz/long_token.xyz", "0 0 " + "1" * 5000 + "\n", "expected a number for z")
add("pts/no_count.pts", "0 0 0\n", "expected the number of points")
add("pts/count_high.pts", "1000000\n0 0 0\n", "1000000 points: ")
add("pts/count_one_high.pts", "3\n0 0 0.000\n1 1 1.000\n", "ends after 2 of 3 rows")
add("pts/count_low.pts", "1\n0 0 0\n1 1 1\n", "more rows than the 1 announced")
add("pts/count_negative.pts", "-5\n0 0 0\n", "expected the number of points")
add("csv/empty_cell.csv", "x,y,z\n0,,1\n", "expected a number for y")

# --- OBJ
add("obj/one_byte.obj", b"v", "expected 3, 4, 6 or 7 numbers in a vertex, found 0")
add("obj/faces_only.obj", "f 1 2 3\n", "vertex 3 is used, the file has 0")
add("obj/index_zero.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", "expected the index of a vertex")
add("obj/index_high.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "vertex 4 is used, the file has 3")
add("obj/index_negative.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -4 -2 -1\n", "vertex -4 of the 3 before it")
add("obj/index_overflow.obj", "v 0 0 0\nf 1 99999999999 1\n", "out of range")
add("obj/index_overflow_64.obj", "v 0 0 0\nf 1 99999999999999999999 1\n", "expected the index of a vertex")
add("obj/texture_high.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/2 3/1\n", "texture coordinate 2 is used, the file has 1")
add("obj/normal_high.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1//1 2//1 3//1\n", "normal 1 is used, the file has 0")
add("obj/two_corners.obj", "v 0 0 0\nv 1 0 0\nf 1 2\n", "a face of 2 corners")
add("obj/long_face.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf" + " 1 2 3" * 400 + "\n", "ok")
add("obj/slashes.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1// 2/ /3\n", "expected the index of a vertex")
add("obj/unknown_keyword.obj", "v 0 0 0\nfoo 1\n", 'unknown keyword "foo"')
add("obj/vertex_word.obj", "v 0 0 a\n", 'expected a number, found "a"')
add("obj/continued.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 \\\n2 3\n", "ok")
add("obj/continued_at_end.obj", "v 0 0 0\\", "ok")
add("obj/negative_ok.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1", "ok")
add("obj/comments_only.obj", "# nothing\n", "holds no points")

# --- OFF
add("off/one_byte.off", b"O", 'expected "OFF"')
add("off/not_off.off", "OF490 518 0\n", 'expected "OFF"')
add("off/header_only.off", "OFF\n", "ends before the counts")
add("off/glued.off", "OFF3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "ok")
add("off/comments_and_blanks.off", "# c\nOFF # c\n\n# c\n3 1 0 # c\n\n0 0 0\n# c\n1 0 0 # c\n0 1 0\n\n3 0 1 2 # c\n", "ok")
add("off/counts_missing.off", "OFF\n3\n0 0 0\n", "expected the number of faces")
add("off/counts_word.off", "OFF\nthree 1 0\n", "expected the number of vertices")
add("off/counts_huge.off", "OFF\n9999999999 1 0\n", "at most")
add("off/counts_large.off", "OFF\n2000000000 1 0\n0 0 0\n", "2000000000 vertices: ")
add("off/faces_large.off", "OFF\n3 2000000000 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "2000000000 faces: ")
add("off/coff_without_colors.off", "COFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n", "in a vertex with color, found 3")
add("off/off_with_colors.off", "OFF\n3 0 0\n0 0 0 255 0 0\n1 0 0 255 0 0\n0 1 0 255 0 0\n", "found more")
add("off/noff_short.off", "NOFF\n1 0 0\n0.00 0.00 0.00 1\n", "expected 6 numbers, found 4")
add("off/face_of_seven.off", "OFF\n7 1 0\n" + "".join(f"{i} 0 0\n" for i in range(7)) + "7 0 1 2 3 4 5 6\n", "ok")
add("off/face_high.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", "vertex 3 of 3")
add("off/face_negative.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n", "vertex -1 of 3")
add("off/face_count_huge.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n4000000000 0 1 2\n", "expected the number of corners")
add("off/face_cut.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1\n", "expected 3 vertex indices, found 2")
add("off/faces_missing.off", "OFF\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "ends before face 1 of 2")
add("off/homogeneous.off", "4OFF\n1 0 0\n0 0 0 1\n", "is not read")
add("off/binary.off", b"OFF BINARY\n\0\0\0\3", "binary OFF is not read")
add("off/long_comment.off", "OFF\n# " + "c" * 5000 + "\n1 0 0\n0 0 0\n", "ok")
add("off/no_points.off", "OFF\n0 0 0\n", "ok")
add("off/no_points_but_faces.off", "OFF\n0 1 0\n3 0 1 2\n", "vertex 0 of 0")

# --- PCD
def pcd(body, fields="x y z", size="4 4 4", type="F F F", count="1 1 1", width=3, height=1, points=3, data="ascii"):
    header = (f"# .PCD v0.7\nVERSION 0.7\nFIELDS {fields}\nSIZE {size}\nTYPE {type}\nCOUNT {count}\nWIDTH {width}\n"
              f"HEIGHT {height}\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {points}\nDATA {data}\n").encode()
    return header + (body if isinstance(body, bytes) else body.encode())


add("pcd/one_byte.pcd", b"#", "ends inside the header")
add("pcd/header_only.pcd", pcd(""), "3 points: ")
add("pcd/width_word.pcd", pcd(ROWS, width="POINT"), "expected an integer for WIDTH")
add("pcd/size_mismatch.pcd", pcd(ROWS, points=4), "is not POINTS 4")
add("pcd/size_overflow.pcd", pcd(ROWS, width=4294967296, height=4294967296, points=0), "is not POINTS 0")
add("pcd/many_points.pcd", pcd(XYZ, width=400000000, points=400000000, data="binary"), "400000000 points: ")
add("pcd/type_unknown.pcd", pcd(ROWS, type="F X F"), "no type")
add("pcd/size_unknown.pcd", pcd(ROWS, size="4 3 4"), "of 3 bytes")
add("pcd/fields_mismatch.pcd", pcd(ROWS, size="4 4"), "3 FIELDS, 2 SIZE")
add("pcd/count_zero.pcd", pcd(ROWS, count="1 0 1"), "COUNT 0")
add("pcd/count_huge.pcd", pcd(ROWS, count="1 1000000000 1"), "COUNT 1000000000")
add("pcd/no_points.pcd", pcd("", width=0, points=0), "ok")
add("pcd/no_x.pcd", pcd(ROWS, fields="a y z"), "no column named x")
add("pcd/data_unknown.pcd", pcd(ROWS, data="zip"), "unknown DATA")
add("pcd/keyword_unknown.pcd", "# .PCD v0.7\nHELLO 1\n", "expected a header keyword")
add("pcd/binary_cut.pcd", pcd(XYZ[:35], data="binary"), "the file has 35 left")
add("pcd/compressed_size.pcd", pcd(struct.pack("<II", 10, 99) + bytes(10), data="binary_compressed"), "uncompressed size 99, 3 points need 36")
add("pcd/compressed_bomb.pcd", pcd(struct.pack("<II", 1, 12000) + b"\0", width=1000, points=1000, data="binary_compressed"), "cannot hold")
add("pcd/compressed_past_end.pcd", pcd(struct.pack("<II", 1000, 36) + bytes(20), data="binary_compressed"), "the compressed points: 1000 bytes needed")
add("pcd/compressed_damaged.pcd", pcd(struct.pack("<II", 4, 36) + b"\xff\xff\xff\xff", data="binary_compressed"), "are damaged")
add("pcd/compressed_short.pcd", pcd(struct.pack("<II", 13, 36) + b"\x0b" + bytes(12), data="binary_compressed"), "are damaged")
add("pcd/compressed_literals.pcd", pcd(struct.pack("<II", 38, 36) + b"\x1f" + XYZ[:32] + b"\x03" + XYZ[32:], data="binary_compressed"), "ok")
add("pcd/nan.pcd", pcd("nan nan nan\n1 0 0\n0 1 0\n"), "ok")
add("pcd/padding.pcd", pcd(b"".join(XYZ[12 * i:12 * i + 12] + b"\0\0\0\0" for i in range(3)), fields="x y z _", size="4 4 4 1", type="F F F U", count="1 1 1 4", data="binary"), "ok")

# --- STL
add("stl/one_byte.stl", b"s", 'neither an ascii STL (solid ...) nor a binary one: 1 bytes, a header has 84')
add("stl/header_only.stl", bytes(84), "ok")
add("stl/count_high.stl", bytes(80) + struct.pack("<I", 1000) + bytes(50), '1000 facets: 50000 bytes needed')
add("stl/count_huge.stl", bytes(80) + struct.pack("<I", 0xFFFFFFFF) + bytes(50), '4294967295 facets, the limit is 2147483647')
add("stl/ascii_cut.stl", "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n", 'the file ends where vertex should be')
add("stl/ascii_word.stl", "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 zero 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n", 'a vertex: expected a number, got "zero"')
add("stl/ascii_empty.stl", "solid a\nendsolid a\n", "ok")
add("stl/binary_with_solid.stl", b"solid but binary".ljust(80) + struct.pack("<I12fH", 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0), "ok")

# --- LAS
def las(points=1, version=(1, 2), format=0, length=20, header_size=227, offset=None, vlrs=0, body=None, magic=b"LASF", scale=(0.01,) * 3, vlr_bytes=b"", legacy=None):
    offset = header_size + len(vlr_bytes) if offset is None else offset
    header = magic + struct.pack("<HHIHH8s", 0, 0, 0, 0, 0, bytes(8)) + bytes(version) + bytes(64) + struct.pack("<HHHII", 1, 2024, header_size, offset, vlrs)
    header += struct.pack("<BHI5I", format, length, points if legacy is None else legacy, 0, 0, 0, 0, 0)
    header += struct.pack("<3d3d6d", *scale, 0, 0, 0, 1, 0, 1, 0, 1, 0)
    if version >= (1, 3):
        header += struct.pack("<Q", 0)
    if version >= (1, 4):
        header += struct.pack("<QIQ15Q", 0, 0, points, *([0] * 15))
    return header.ljust(header_size, b"\0") + vlr_bytes + (bytes(length * points) if body is None else body)


add("las/one_byte.las", b"L", 'not a LAS file: it must begin with LASF')
add("las/magic.las", las(magic=b"LASX"), 'not a LAS file: it must begin with LASF')
add("las/good.las", las(), "ok")
add("las/vlr_count_garbage.las", las(vlrs=0xFFFFFFFF), '4294967295 variable length records, the limit is 65536')
add("las/vlr_cut.las", las(vlrs=1), '1 variable length records need 54 bytes, there are 0 before the points')
add("las/vlr_length_past_points.las", las(vlrs=1, vlr_bytes=struct.pack("<H16sHH32s", 0, b"x", 1, 60000, b"")), 'variable length record "x" of 60000 bytes reaches into the points at byte 281')
add("las/count_high.las", las(points=1, legacy=1000), '1000 points of 20 bytes at byte 227 need 20227 bytes, the file has 247')
add("las/no_points.las", las(points=0), "ok")
add("las/record_short.las", las(length=10), 'point records of 10 bytes; point format 0 needs 20')
add("las/offset_in_header.las", las(offset=100), 'offset to the points 100 lies inside the header of 227 bytes')
add("las/offset_past_end.las", las(offset=100000), '1 points of 20 bytes at byte 100000 need 100020 bytes, the file has 247')
add("las/format_unknown.las", las(format=11), 'point format 11; 0 to 10 are read')
add("las/format_laz.las", las(format=0x80), "the points are compressed (LAZ), and no record tells how")
add("las/version.las", las(version=(3, 0)), 'LAS version 3.0; 1.0 to 1.4 are read')
add("las/scale_zero.las", las(scale=(0, 0.01, 0.01)), 'scale 0 of axis 0 is not a finite number other than 0')
add("las/scale_nan.las", las(scale=(float("nan"), 0.01, 0.01)), 'scale nan of axis 0 is not a finite number other than 0')
add("las/extra_bytes.las", las(length=26), "ok")

# --- LAZ: six points of formats 3 and 8, compressed by tests/support/laz_writer.cpp
LAZ3 = zlib.decompress(base64.b64decode(
    "eNrzcQx2Y8ACGJkYqAAeMwQzAs0CspqVGdhwKKoWWef+sKrFHp1moBrISSyuyixQSM1Lzk9JTWFg2BNmRVAPyP9M0EBgAeL/aIAF6B8RoCp2Bg"
    "4gyQHkgRQzAslnjBBdNkCsC8R/gaoZGDwZGRkgEg3+Qo5crBfYd3AzPMg6HbHqgcvqqOlC2rsZWlYJu5ee60p6L50y65dQibvah4DzYQkKBrPv"
    "zH18udVnC0i7ERDHArE42ChOJj2gobp2rAwtQEP9WP4yabIzPFTzcCte/XZxwWfNM3emmExH8pB1qjWQBACA5FHu"))
LAZ8 = zlib.decompress(base64.b64decode(
    "eNrzcQx2Y8ACGFkYqADKGR8yAs0CsjrUcSqqFlnn/rCqxR6dZqAhYGMYaJCTWFyVWaCQmpecn5KawsCwJ8yEoB5mEGaCsP9jAcwMXAxyQFU8DB"
    "xAkg8Y8MwMkcwQ9U5ALAk151aSoCMjg/tZRjCvxV/I8S+TF8cCnr9M4LgiNepBeoyBWAqIfwOdIXQmxIHpEsj4lwl//zcDjc9j9uKQ5MljBhst"
    "CMTsUAyKBy6oMexQmh8qxgHl6ylZ7Ipsff3orIr5lXebgQI6qvrbgRQTy/9/INtZHwDJ+xwe8Wqle8Aa3EEEx+QXz3jvfrl6/ohVO5BbeTC7st"
    "3NDsiy2Pb3mi6QngDE8lDr1r4ycoAEyFErS+MWsIsjmVRZgC4mN0Bg8cVyIq8rcFJTNpAJAB+AZkc="))


def laz(of, *changes, end=None):
    data = bytearray(of)
    for at, kind, value in changes:
        struct.pack_into("<" + kind, data, at, value)
    return bytes(data[:end])


RECORD, POINTS3, POINTS8 = 227 + 54, struct.unpack_from("<I", LAZ3, 96)[0], struct.unpack_from("<I", LAZ8, 96)[0]
TABLE3 = struct.unpack_from("<q", LAZ3, POINTS3)[0]
FIRST8 = POINTS8 + 8 + struct.unpack_from("<H", LAZ8, 105)[0]  # behind the first record: points, then sizes of layers
add("laz/good_3.laz", LAZ3, "ok")
add("laz/good_8.laz", LAZ8, "ok")
add("laz/one_byte.laz", b"L", "not a LAS file")
add("laz/no_record.laz", laz(LAZ3, (RECORD - 36, "H", 1)), "no record tells how")
add("laz/not_marked.laz", laz(LAZ3, (104, "B", 3), (107, "I", 1)), "the point format says that they are not")
add("laz/method.laz", laz(LAZ3, (RECORD, "H", 1)), "compressed by method 1.0 are not read")
add("laz/coder.laz", laz(LAZ3, (RECORD + 2, "H", 1)), "compressed by method 2.1 are not read")
add("laz/chunk_zero.laz", laz(LAZ3, (RECORD + 12, "I", 0)), "chunks of 0 points")
add("laz/chunk_small.laz", laz(LAZ3, (RECORD + 12, "I", 3)), "damaged")
add("laz/chunk_varies.laz", laz(LAZ3, (RECORD + 12, "I", 0xFFFFFFFF)), "in the middle of the table of chunks")
add("laz/items_many.laz", laz(LAZ3, (RECORD + 32, "H", 60000)), "ends after 58 bytes")
add("laz/item_size.laz", laz(LAZ3, (RECORD + 36, "H", 21)), "is of type 6 and 21 bytes")
add("laz/item_version.laz", laz(LAZ3, (RECORD + 38, "H", 1)), "version 1 of the compression")
add("laz/wave_packets.laz", laz(LAZ3, (104, "B", 0x84), (105, "H", 57)), "compressed points of format 4 are not read")
add("laz/table_past_end.laz", laz(LAZ3, (POINTS3, "q", 1 << 60)), "the table of chunks is said to be at byte")
add("laz/table_negative.laz", laz(LAZ3, (POINTS3, "q", -2)), "the table of chunks is said to be at byte -2")
add("laz/table_early.laz", laz(LAZ3, (POINTS3, "q", TABLE3 - 1)), "reaches into the table")
add("laz/table_unknown.laz", laz(LAZ3, (POINTS3, "q", -1)), "ok")
add("laz/table_missing.laz", laz(LAZ3, (POINTS3, "q", -1), end=TABLE3), "ok")
add("laz/table_cut.laz", laz(LAZ3, end=-1), "the table of chunks")
add("laz/table_count.laz", laz(LAZ3, (TABLE3 + 4, "I", 0xFFFFFFFF)), "a table of 4294967295 chunks")
add("laz/points_many.laz", laz(LAZ3, (107, "I", 2000000000)), "damaged")
add("laz/points_few.laz", laz(LAZ3, (107, "I", 5)), "damaged")
add("laz/cut.laz", laz(LAZ3, (POINTS3, "q", -1), end=TABLE3 - 1), "ends too early")
add("laz/cut_first.laz", laz(LAZ3, (POINTS3, "q", -1), end=POINTS3 + 20), "the first point of a chunk")
add("laz/layer_huge.laz", laz(LAZ8, (FIRST8 + 4, "I", 0xFFFFFFF0)), "a layer of points: 4294967280 bytes needed")
add("laz/layer_empty.laz", laz(LAZ8, (FIRST8 + 4, "I", 0)), "a chunk of 224780 points where at most 5 are left")
add("laz/layers_points_zero.laz", laz(LAZ8, (FIRST8, "I", 0)), "a chunk of 0 points where at most 6 are left")
add("laz/layers_points_many.laz", laz(LAZ8, (FIRST8, "I", 7)), "a chunk of 7 points where at most 6 are left")

# --- KITTI
add("kitti/one_byte.bin", b"1", '1 bytes are no whole number of points of 16 bytes (x y z intensity in float32)')
add("kitti/size.bin", bytes(30), '30 bytes are no whole number of points of 16 bytes (x y z intensity in float32)')
add("kitti/good.bin", struct.pack("<4f", 1, 2, 3, 0.5), "ok")

# --- NPY, NPZ
def npy(header, body=b"", version=b"\1\0", length=None):
    text = header.encode()
    return b"\x93NUMPY" + version + struct.pack("<H", len(text) if length is None else length) + text + body


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }\n"
add("npy/one_byte.npy", b"\x93", 'the file ends in the middle of the NPY magic')
add("npy/good.npy", npy(GOOD, XYZ[:12]), "ok")
add("npy/header_past_end.npy", npy(GOOD, XYZ[:12], length=60000), 'the NPY header: 60000 bytes needed')
add("npy/shape_overflow.npy", npy(GOOD.replace("(1, 3)", "(4611686018427387904, 3)")), 'NPY header: the size of shape [4611686018427387904, 3] overflows 64 bits')
add("npy/shape_large.npy", npy(GOOD.replace("(1, 3)", "(1000000000, 3)"), XYZ[:12]), 'an array of shape [1000000000, 3] needs 12000000000 bytes, the file has 12')
add("npy/shape_negative.npy", npy(GOOD.replace("(1, 3)", "(-1, 3)")), 'NPY header: shape: expected a count at "-1, 3), }?"')
add("npy/rank.npy", npy(GOOD.replace("(1, 3)", "(1,1,1,1,1,1,1,1,1,3)"), XYZ[:12]), 'NPY header: more than 8 dimensions')
add("npy/object.npy", npy(GOOD.replace("<f4", "|O")), 'NPY header: an object array, which is a pickle')
add("npy/structured.npy", npy(GOOD.replace("'<f4'", "[('x', '<f4')]")), 'NPY header: a structured array (fields with names)')
add("npy/complex.npy", npy(GOOD.replace("<f4", "<c8"), bytes(24)), 'NPY header: type "<c8" is not read; bool, integers and floats of up to 8 bytes are')
add("npy/code.npy", npy("__import__('os').system('true')\n"), 'NPY header: expected \'{\' at "__import__(\'os\').system(\'true\')?"')
add("npy/trailing.npy", npy(GOOD, XYZ), 'an array of shape [1, 3] needs 12 bytes, the file has 36')
add("npy/short.npy", npy(GOOD, XYZ[:8]), 'an array of shape [1, 3] needs 12 bytes, the file has 8')
add("npy/version.npy", npy(GOOD, XYZ[:12], version=b"\7\0"), 'NPY version 7; 1 to 3 are read')
add("npy/fortran.npy", npy(GOOD.replace("False", "True").replace("(1, 3)", "(3, 3)"), XYZ), "ok")
add("npy/big_endian.npy", npy(GOOD.replace("<f4", ">f4"), struct.pack(">3f", 1, 2, 3)), "ok")
add("npy/deep.npy", npy("{'descr': " + "(" * 5000 + ")" * 5000 + "}"), 'NPY header: expected a type in quotes at "((((((((((((((((((((((((((((((((((((((((..."')


def zip_entry(name, data, method=0, size=None, crc=None, flags=0):
    stored = data
    if method == 8:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        stored = packer.compress(data) + packer.flush()
    return struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, flags, method, 0, 0, zlib.crc32(data) if crc is None else crc,
                       len(stored), len(data) if size is None else size, len(name), 0) + name + stored


END = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0, 0, 0, 0, 0)
P = npy(GOOD, XYZ[:12])
add("npz/one_byte.npz", b"P", 'the file ends where a zip entry should be')
add("npz/end_only.npz", END, 'no array is named positions, points, xyz, pos or data, and none is of shape [n, 3]')
add("npz/encrypted.npz", zip_entry(b"points.npy", P, flags=1) + END, 'zip: "points.npy" is encrypted')
add("npz/method.npz", zip_entry(b"points.npy", P, method=12) + END, 'zip: "points.npy" is compressed by method 12; stored and deflated are read')
add("npz/crc.npz", zip_entry(b"points.npy", P, crc=1) + END, '"points.npy": zip: "points.npy" is damaged: its CRC-32 is de671dd2, not 00000001')
add("npz/size.npz", zip_entry(b"points.npy", P, method=8, size=len(P) + 100) + END, '"points.npy": an array of shape [1, 3] needs 12 bytes, the file has 112')
add("npz/bomb.npz", zip_entry(b"points.npy", bytes(1 << 20), method=8, size=0xFFFFFFF0) + END, '"points.npy": not an NPY file: it must begin with \\x93NUMPY')
add("npz/cut.npz", zip_entry(b"points.npy", P)[:-5], 'the bytes of "points.npy": 82 bytes needed')
add("npz/twice.npz", zip_entry(b"points.npy", P) + zip_entry(b"points.npy", P) + END, 'zip: "points.npy" occurs twice')

# --- safetensors
def tensors(header, body=b"", length=None):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


T = '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
add("safetensors/one_byte.safetensors", b"1", 'the file ends in the middle of the header length')
add("safetensors/good.safetensors", tensors(T, XYZ[:12]), "ok")
add("safetensors/length_past_end.safetensors", tensors(T, XYZ[:12], length=10**6), 'the header: 1000000 bytes needed')
add("safetensors/length_huge.safetensors", tensors(T, XYZ[:12], length=2**63 + 5), 'a header of 9223372036854775813 bytes, more than 100000000 are not read')
add("safetensors/length_zero.safetensors", tensors("", b""), 'a header of 0 bytes is too short')
add("safetensors/not_json.safetensors", tensors("hello world"), "the header must start with '{'")
add("safetensors/array.safetensors", tensors("[1,2]"), "the header must start with '{'")
add("safetensors/deep.safetensors", tensors('{"a":' + "[" * 100000 + "]" * 100000 + "}"), 'tensor "a": expected an object, found an array')
add("safetensors/duplicate.safetensors", tensors(T[:-1] + "," + T[1:], XYZ[:12]), 'two tensors are named "a"')
add("safetensors/hole.safetensors", tensors(T.replace("[0,12]", "[4,16]"), XYZ[:16]), 'tensor "a": data start at 4, leaving a hole behind the data before, which end at 0')
add("safetensors/overlap.safetensors", tensors(T[:-1] + ',"b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}}', XYZ[:16]), 'tensor "b": data start at 4, overlapping the data before, which end at 12')
add("safetensors/shape_mismatch.safetensors", tensors(T.replace("[3]", "[4]"), XYZ[:12]), 'tensor "a": shape and dtype need 16 bytes, data_offsets are 0 to 12')
add("safetensors/shape_overflow.safetensors", tensors(T.replace("[3]", "[4294967296,4294967296,4294967296]"), XYZ[:12]), 'tensor "a": the shape overflows 64 bits')
add("safetensors/shape_negative.safetensors", tensors(T.replace("[3]", "[-3]"), XYZ[:12]), 'tensor "a": "shape" must hold whole numbers, found a negative number')
add("safetensors/shape_real.safetensors", tensors(T.replace("[3]", "[3.0]"), XYZ[:12]), 'tensor "a": "shape" must hold whole numbers, found a number that is not a whole one below 2^63')
add("safetensors/dtype.safetensors", tensors(T.replace("F32", "C64"), XYZ[:12]), 'tensor "a": unknown dtype "C64"')
add("safetensors/offsets_reversed.safetensors", tensors(T.replace("[0,12]", "[12,0]"), XYZ[:12]), 'tensor "a": shape and dtype need 12 bytes, data_offsets are 12 to 0')
add("safetensors/trailing.safetensors", tensors(T, XYZ[:16]), 'the header describes 12 bytes of data, the file has 16')
add("safetensors/short.safetensors", tensors(T, XYZ[:8]), 'the header describes 12 bytes of data, the file has 8')
add("safetensors/metadata_number.safetensors", tensors(T[:-1] + ',"__metadata__":{"a":1}}', XYZ[:12]), 'metadata "a" must be a string, found a number')
add("safetensors/surrogate.safetensors", tensors(T.replace('"a"', '"\\ud800"'), XYZ[:12]), 'the header is not valid UTF-8 JSON')
add("safetensors/utf8.safetensors", tensors(T.encode().replace(b'"a"', b'"\xff"'), XYZ[:12]), 'the header is not valid UTF-8 JSON')
add("safetensors/number_overflow.safetensors", tensors(T.replace("[3]", "[1e400]"), XYZ[:12]), 'the header is not valid UTF-8 JSON')

# --- weights: files that are good safetensors, and int8 rows that do not fit their scales
def rows(scales="[2]", rows="[2,3]", name="a.scale", dtype="F32", metadata="", scale=(0.5, 0.25), values=bytes([1, 129, 127, 0, 255, 2])):
    packed = struct.pack(f"<{len(scale)}{'e' if dtype == 'F16' else 'f'}", *scale)
    n = len(packed)
    return tensors(f'{{{metadata}"{name}":{{"dtype":"{dtype}","shape":{scales},"data_offsets":[0,{n}]}},'
                   f'"a":{{"dtype":"I8","shape":{rows},"data_offsets":[{n},{n + len(values)}]}}}}', packed + values)


INT8 = '"__metadata__":{"stipple.storage":"int8-rows"},'
add("weights/rows.safetensors", rows(metadata=INT8), "ok")
add("weights/rows_zero.safetensors", rows(scale=(0, 0)), "ok")
add("weights/rows_empty.safetensors", rows(rows="[2,0]", values=b""), "ok")
add("weights/rows_without_scale.safetensors", rows(name="b.scale"), 'tensor "a": int8 rows need their scales, "a.scale" of float32')
add("weights/scale_without_rows.safetensors", rows(name="b.scale", metadata=INT8), 'tensor "b.scale": scales of int8 rows "b", which are not there')
add("weights/scale_shape.safetensors", rows("[3]", scale=(1, 1, 1)), 'tensor "a.scale": should be [2], a scale for each row of "a", found [3]')
add("weights/scale_rank.safetensors", rows("[2,1]"), 'tensor "a.scale": should be [2], a scale for each row of "a", found [2, 1]')
add("weights/scale_half.safetensors", rows(dtype="F16"), 'tensor "a.scale": scales of int8 rows are float32, found float16')
add("weights/scale_negative.safetensors", rows(scale=(0.5, -0.25)), 'tensor "a.scale": -0.25 of row 1 is no scale')
add("weights/scale_nan.safetensors", rows(scale=(float("nan"), 1)), 'tensor "a.scale": nan of row 0 is no scale')
add("weights/scale_inf.safetensors", rows(scale=(1, float("inf"))), 'tensor "a.scale": inf of row 1 is no scale')
add("weights/value_minus_128.safetensors", rows(values=bytes([1, 129, 127, 0, 128, 2])), 'tensor "a": -128 at 4, int8 rows go from -127 to 127')
add("weights/rows_without_shape.safetensors", rows("[1]", "[]", scale=(1,), values=b"\1"), 'tensor "a": int8 rows have a shape, found a single number')

# --- event files of TensorBoard
def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def record(message, length=None):
    mask = lambda data: struct.pack("<I", ((crc32c(data) >> 15 | crc32c(data) << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)
    head = struct.pack("<Q", len(message) if length is None else length)
    return head + mask(head) + message + mask(message)


VERSION = record(b"\x09" + struct.pack("<d", 1.5e9) + b"\x1a\x0dbrain.Event:2")
SCALAR = record(b"\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 0.25))
IMAGE = record(b"\x10\x07\x2a\x0f\x0a\x0d\x0a\x01a\x22\x08\x08\x01\x10\x01\x18\x01\x22\x00")
add("events/empty.events", b"", "ok")
add("events/good.events", VERSION + SCALAR + IMAGE, "ok")
add("events/torn.events", VERSION + SCALAR + IMAGE[:-3], "ok")
add("events/torn_version.events", VERSION[:-3], "ok")
add("events/zeros_behind.events", VERSION + SCALAR + bytes(4096), "ok")
add("events/checksum.events", VERSION + SCALAR[:-1] + b"?" + IMAGE, "ok")
add("events/no_version.events", SCALAR, "not an event file: it must begin with a record of its version")
add("events/zeros.events", bytes(64), "not an event file: it must begin with a record of its version")
add("events/text.events", "step,loss\n1,0.5\n2,0.25\n", "not an event file: it must begin with a record of its version")
add("events/length_huge.events", VERSION + record(b"", length=2**63), "byte 40: a record of 9223372036854775808 bytes, more than 67108864 are not read")
add("events/varint.events", VERSION + record(b"\x10" + b"\xff" * 10), "byte 63: protocol buffers: a number of more than 64 bits")
add("events/wire_type.events", VERSION + record(b"\x13"), "byte 53: protocol buffers: a field of an unknown type")
add("events/field_zero.events", VERSION + record(b"\0\0"), "byte 53: protocol buffers: no field has that number")
add("events/nested_length.events", VERSION + record(b"\x2a\x02\x0a\x05"), "byte 56: protocol buffers: a field is longer than its message")

# --- TFRecord files of tf.Example
def field(number, content):
    return bytes([8 * number + 2, len(content)]) + content


def example(**lists):
    entries = [field(1, field(1, name.encode()) + field(2, field(2, field(1, struct.pack(f"<{len(v)}f", *v))))) for name, v in lists.items()]
    return field(1, b"".join(entries))


PAIR = record(example(a=[1, 2, 3], b=[1, 2, 3, 4, 5, 6]))
add("tfrecord/empty.tfrecord", b"", "ok")
add("tfrecord/good.tfrecord", PAIR + PAIR, "ok")
add("tfrecord/empty_example.tfrecord", record(b""), "ok")
add("tfrecord/one_by_one.tfrecord", record(field(1, field(1, field(1, b"a") + field(2, field(2, b"\x0d\0\0\x80\x3f\x0d\0\0\0\x40"))))), "ok")
add("tfrecord/integers.tfrecord", record(field(1, field(1, field(1, b"a") + field(2, field(3, field(1, b"\1\2")))))), "ok")
add("tfrecord/cut.tfrecord", PAIR + PAIR[:-1], f"byte {len(PAIR)}: the file ends within a record")
add("tfrecord/cut_head.tfrecord", PAIR + PAIR[:11], f"byte {len(PAIR)}: the file ends within a record")
add("tfrecord/checksum.tfrecord", PAIR[:-1] + b"?", "byte 0: the checksum of a record is wrong")
add("tfrecord/checksum_head.tfrecord", PAIR[:8] + b"????" + PAIR[12:], "byte 0: the checksum of a record's length is wrong")
add("tfrecord/text.tfrecord", "x,y,z\n1,2,3\n4,5,6\n", "byte 0: the checksum of a record's length is wrong")
add("tfrecord/length_huge.tfrecord", record(b"", length=2**63), "byte 0: a record of 9223372036854775808 bytes, more than 67108864 are not read")
add("tfrecord/varint.tfrecord", record(b"\x0a" + b"\xff" * 10), "protocol buffers: a number of more than 64 bits")
add("tfrecord/field_long.tfrecord", record(field(1, b"\x0a\x7f")), "protocol buffers: a field is longer than its message")
add("tfrecord/wire_type.tfrecord", record(b"\x0b"), "protocol buffers: a field of an unknown type")
add("tfrecord/floats_odd.tfrecord", record(field(1, field(1, field(1, b"a") + field(2, field(2, field(1, b"12345")))))), "5 bytes are no list of floats")

# --- images
PNG = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=1, height=1, depth=8, color=2, raw=b"\0\1\2\3"):
    return PNG + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


add("png/one_byte.png", b"\x89", 'the file ends in the PNG header')
add("png/good.png", png(), "ok")
add("png/size_huge.png", png(0x7FFFFFFF, 0x7FFFFFFF), 'a picture of 2147483647 x 2147483647 pixels, at most 268435456 and 65535 a side are read')
add("png/size_zero.png", png(0, 1), 'a PNG without pixels')
add("png/depth.png", png(depth=7), 'damaged PNG: Invalid IHDR data')
add("png/short.png", png(height=100), 'damaged PNG: Not enough image data')
add("png/crc.png", png()[:-20] + b"x" + png()[-19:], 'damaged PNG: IDAT: incorrect data check')
add("jpeg/one_byte.jpg", b"\xff", 'the file ends in the middle of the JPEG data')
add("jpeg/header_only.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0", 'the file ends in the middle of the JPEG data')
add("jpeg/garbage.jpg", b"\xff\xd8\xff" + bytes(range(256)), 'the file ends in the middle of the JPEG data')


# --- packed data sets: the format as stipple/data/packed.h describes it, written a second time
def range_coded(clouds, bits):
    """Coordinates [cloud][axis][point] as whole numbers."""
    low, spread, first, waiting, out = 0, 0xFFFFFFFF, 0, 1, bytearray()

    def shift():
        nonlocal low, first, waiting
        if low < 0xFF000000 or low > 0xFFFFFFFF:
            for i in range(waiting):
                out.append(((0xFF if i else first) + (low >> 32)) & 0xFF)
            waiting, first = 0, low >> 24 & 0xFF
        waiting += 1
        low = (low & 0xFFFFFF) << 8

    for axis in (axis for cloud in clouds for axis in cloud):
        counts = {}
        for number in axis:
            node = 1
            for place in reversed(range(bits)):
                bit = number >> place & 1
                zeros, ones = counts.setdefault(node, [2, 2])
                probability = min(max((zeros << 15) // (zeros + ones), 512), 32768 - 512)
                bound = (spread >> 15) * probability
                low, spread = (low + bound, spread - bound) if bit else (low, bound)
                while spread < 1 << 24:
                    spread <<= 8
                    shift()
                counts[node][bit] += 1
                node = 2 * node + bit
    for _ in range(5):
        shift()
    return bytes(out)


def packed(fields=None, points=4, changes=(), after=b"", crc=0, bits=10):
    clouds = [[[0, 1023, 5], [0, 0, 1023], [1023, 7, 0]], [[0], [0], [0]]]
    if fields is None:
        fields = struct.pack("<2I2H", 3, 1, 1, 0) + struct.pack("<12f", -1, -1, 0, 1, 1, 0.5, *[2] * 6) + struct.pack("<2H", 1, 2) + b"abc" + bytes([0, 2, 1, 1])
    deflated, coded = zlib.compress(fields), range_coded(clouds, bits)
    header = (
        f'{{"format":1,"bits":{bits},"labels":true,"names":true,"parts":true,"classes":["cup","lamp"],"part_names":[],'
        '"categories":[{"name":"cup","begin":0,"end":2},{"name":"lamp","begin":2,"end":5}],"splits":[{"name":"train","blocks":['
        f'{{"items":2,"points":{points},"inflated":{len(fields)},"deflated":{len(deflated)},"coded":{len(coded)},"crc32":{zlib.crc32(deflated + coded) ^ crc}}}]}}]}}'
    )
    for before, behind in changes:
        header = header.replace(before, behind)
    header = header.encode()
    return b"STPKDATA" + struct.pack("<QI", len(header), zlib.crc32(header)) + header + deflated + coded + after


GOOD = packed()
add("packed/good.stpk", GOOD, "ok")
add("packed/empty.stpk", b"", "the first bytes")
add("packed/magic.stpk", b"STPKDATE" + GOOD[8:], "does not begin with STPKDATA")
add("packed/header_huge.stpk", GOOD[:8] + struct.pack("<Q", 1 << 62) + GOOD[16:], "a header of 4611686018427387904 bytes")
add("packed/header_long.stpk", GOOD[:8] + struct.pack("<Q", 9999) + GOOD[16:], "the header")
add("packed/header_flipped.stpk", GOOD[:40] + b"!" + GOOD[41:], "the header is damaged")
add("packed/cut.stpk", GOOD[:-1], "blocks")
add("packed/longer.stpk", GOOD + b"x", "1 bytes follow the last block")
add("packed/block_flipped.stpk", packed(crc=1), "is damaged: its checksum differs")
add("packed/no_json.stpk", packed(changes=[('"bits"', "bits")]), "the header")
add("packed/bits.stpk", packed(changes=[('"bits":10', '"bits":40')]), "40 bits of a coordinate")
add("packed/format.stpk", packed(changes=[('"format":1', '"format":9')]), "packed in format 9")
add("packed/points_many.stpk", packed(points=2000000000), "cannot hold a block")
add("packed/points_few.stpk", packed(points=3), "sizes of clouds do not add up")
add("packed/bytes_overflow.stpk", packed(changes=[('"coded":', '"coded":99999999999999')]), "a block of 2 clouds")
add("packed/no_splits.stpk", packed(changes=[('"splits":[{"name":"train","blocks":[{"items":2', '"extra":[{"name":"train","blocks":[{"items":2')]), "is not known")
add("packed/part.stpk", packed(changes=[('"end":5', '"end":3')]).replace(b"\2\1\1", b"\2\1\1"), "block 0")
add("packed/box_nan.stpk", packed(struct.pack("<2I2H", 3, 1, 1, 0) + struct.pack("<12f", *[float("nan")] * 12) + struct.pack("<2H", 0, 0) + bytes(4)), "the box of cloud 0")
add("packed/fields_short.stpk", packed(struct.pack("<2I2H", 3, 1, 1, 0)), "too short")
add("packed/fields_long.stpk", packed(struct.pack("<2I2H", 3, 1, 1, 0) + struct.pack("<12f", *[0] * 12) + struct.pack("<2H", 0, 0) + bytes(5)), "too long")
add("packed/label.stpk", packed(struct.pack("<2I2H", 3, 1, 1, 7) + struct.pack("<12f", *[0] * 12) + struct.pack("<2H", 0, 0) + bytes(4)), "label 7, there are 2")

# --- EXIF: the content of an APP1 segment
def exif(entries, start=8, mark=b"Exif\0\0", order=b"II", magic=42):
    end = "<" if order == b"II" else ">"
    body = b"".join(struct.pack(end + "HHIHH", tag, kind, count, value, 0) for tag, kind, count, value in entries)
    return mark + order + struct.pack(end + "HI", magic, start) + struct.pack(end + "H", len(entries)) + body + bytes(4)


add("exif/upright.bin", exif([(0x112, 3, 1, 1)]), "ok")
add("exif/quarter.bin", exif([(0x10f, 2, 1, 0), (0x112, 3, 1, 6)]), "orientation 6")
add("exif/big_endian.bin", exif([(0x112, 3, 1, 8)], order=b"MM"), "orientation 8")
add("exif/empty.bin", b"", "ok")
add("exif/mark_only.bin", b"Exif\0\0", "ok")
add("exif/xmp.bin", b"http://ns.adobe.com/xap/1.0/\0<x/>", "ok")
add("exif/nine.bin", exif([(0x112, 3, 1, 9)]), "ok")
add("exif/long.bin", exif([(0x112, 4, 1, 6)]), "ok")
add("exif/many.bin", exif([(0x112, 3, 70000, 6)]), "ok")
add("exif/directory_far.bin", exif([(0x112, 3, 1, 6)], start=0xffffffff), "ok")
add("exif/directory_self.bin", exif([(0x112, 3, 1, 6)], start=0), "ok")
add("exif/cut.bin", exif([(0x10f, 2, 1, 0), (0x112, 3, 1, 6)])[:38], "ok")
add("exif/count_lies.bin", exif([(0x10f, 2, 1, 0)]).replace(b"\1\0\x0f\1", b"\xff\xff\x0f\1"), "ok")

# --- transforms.json
UPRIGHT = "[[1,0,0,0.5],[0,1,0,-1],[0,0,1,4],[0,0,0,1]]"


def transforms(frames, head='"camera_angle_x": 0.7'):
    return "{%s, \"frames\": [%s]}" % (head, frames)


def view(path="train/r_0", matrix=UPRIGHT, more=""):
    return '{"file_path": "%s", "transform_matrix": %s%s}' % (path, matrix, more)


add("transforms/good.json", transforms(view() + "," + view("./train/r_1.png")), "ok")
add("transforms/lens.json", transforms(view(more=', "fl_x": 3'), '"fl_x": 700, "fl_y": 710, "cx": 320, "cy": 240, "w": 640, "h": 480, "k1": 0.1, "k2": 0, "p1": 0, "p2": 0, "camera_model": "OPENCV", "aabb_scale": 16'), "ok")
add("transforms/empty.json", "", "empty")
add("transforms/list.json", "[]", "is no JSON object")
add("transforms/cut.json", transforms(view())[:60], "this is no JSON")
add("transforms/nan.json", transforms(view(matrix=UPRIGHT.replace("0.5", "NaN"))), "this is no JSON")
add("transforms/overflow.json", transforms(view(matrix=UPRIGHT.replace("0.5", "1e999"))), "this is no JSON")
add("transforms/zero_byte.json", transforms(view()) + "\0", "this is no JSON")
add("transforms/utf8.json", b'{"frames": "\xff"}', "this is no JSON")
add("transforms/no_frames.json", '{"camera_angle_x": 0.7}', "names no photographs")
add("transforms/no_angle.json", transforms(view(), '"a": 1'), "neither camera_angle_x nor fl_x")
add("transforms/angle_negative.json", transforms(view(), '"camera_angle_x": -1'), "between 0 and pi")
add("transforms/frames_text.json", '{"camera_angle_x": 0.7, "frames": "x"}', "is not where it belongs")
add("transforms/frames_twice.json", transforms(view(), '"camera_angle_x": 0.7, "frames": [%s]' % view()), "stands twice")
add("transforms/angle_twice.json", transforms(view(), '"camera_angle_x": 0.7, "camera_angle_x": 0.7'), "stands twice")
add("transforms/path_twice.json", transforms(view() + "," + view()), 'names "train/r_0"')
add("transforms/path_absolute.json", transforms(view("/etc/passwd")), "is an absolute path")
add("transforms/path_up.json", transforms(view("a/../../b")), "leads out of the folder")
add("transforms/path_none.json", transforms('{"transform_matrix": %s}' % UPRIGHT), "has no file_path")
add("transforms/matrix_none.json", transforms('{"file_path": "a"}'), "of 0 numbers")
add("transforms/matrix_3x4.json", transforms(view(matrix="[[1,0,0,0],[0,1,0,0],[0,0,1,0]]")), "of 12 numbers")
add("transforms/matrix_wide.json", transforms(view(matrix="[[1,0,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]")), "4 rows of 4")
add("transforms/matrix_flat.json", transforms(view(matrix="[1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1]")), "4 rows of 4")
add("transforms/matrix_singular.json", transforms(view(matrix="[[1,0,0,0],[0,1,0,0],[0,1,0,0],[0,0,0,1]]")), "singular")
add("transforms/matrix_mirror.json", transforms(view(matrix="[[1,0,0,0],[0,-1,0,0],[0,0,1,0],[0,0,0,1]]")), "mirrors")
add("transforms/matrix_large.json", transforms(view(matrix="[[1e300,0,0,0],[0,1e300,0,0],[0,0,1e300,0],[0,0,0,1]]")), "singular")
add("transforms/size_huge.json", transforms(view(), '"fl_x": 5, "w": 1e12, "h": 1'), "must be a whole number from 1")
add("transforms/fisheye.json", transforms(view(), '"fl_x": 5, "camera_model": "OPENCV_FISHEYE"'), "a model that is not read")
add("transforms/deep.json", '{"a": ' + "[" * 200 + "]" * 200 + "}", "is no JSON object")

# --- COLMAP
add("colmap_cameras/good.txt", "# cameras\n1 PINHOLE 640 480 500 501 320 240\n2 OPENCV 640 480 500 501 320 240 0.1 0 0 0\n", "ok")
add("colmap_cameras/good.bin", struct.pack("<QIiQQ4d", 1, 1, 1, 640, 480, 500, 501, 320, 240), "ok")
add("colmap_cameras/model.txt", "1 FULL_OPENCV 640 480 1 1 1 1 1 1 1 1 1 1 1 1\n", "camera model FULL_OPENCV is not read")
add("colmap_cameras/model.bin", struct.pack("<QIiQQ4d", 1, 1, 10, 640, 480, 500, 501, 320, 240), "camera model THIN_PRISM_FISHEYE is not read")
add("colmap_cameras/model_unknown.bin", struct.pack("<QIiQQ4d", 1, 1, -7, 640, 480, 500, 501, 320, 240), "camera model -7 is not known")
add("colmap_cameras/count_huge.bin", struct.pack("<QIiQQ4d", 1 << 50, 1, 1, 640, 480, 500, 501, 320, 240), "at most")
add("colmap_cameras/count_large.bin", struct.pack("<QIiQQ4d", 1000, 1, 1, 640, 480, 500, 501, 320, 240), "cameras: ")
add("colmap_cameras/cut.bin", struct.pack("<QIiQQ4d", 1, 1, 1, 640, 480, 500, 501, 320, 240)[:60], "a camera's parameters")
add("colmap_cameras/longer.bin", struct.pack("<QIiQQ5d", 1, 1, 1, 640, 480, 500, 501, 320, 240, 0), "more follows")
add("colmap_cameras/size_huge.bin", struct.pack("<QIiQQ4d", 1, 1, 1, 1 << 63, 480, 500, 501, 320, 240), "pixels, 1 to")
add("colmap_cameras/nan.bin", struct.pack("<QIiQQ4d", 1, 1, 1, 640, 480, float("nan"), 501, 320, 240), "focal length")
add("colmap_cameras/twice.txt", "1 PINHOLE 640 480 500 501 320 240\n1 PINHOLE 640 480 500 501 320 240\n", "camera 1 stands twice")
add("colmap_cameras/short.txt", "1 PINHOLE 640 480 500\n", "expected a number for a parameter of PINHOLE")
IMAGE = struct.pack("<I7dI", 1, 1, 0, 0, 0, 0.5, 1, 4, 1)
add("colmap_images/good.txt", "# images\n1 1 0 0 0 0.5 1 4 1 a b.jpg\n\n2 0.5 0.5 0.5 0.5 0 0 0 1 c.jpg\n1 2 -1 3 4 7\n", "ok")
add("colmap_images/good.bin", struct.pack("<Q", 1) + IMAGE + b"a.jpg\0" + struct.pack("<Q2dq", 1, 3, 4, -1), "ok")
add("colmap_images/no_features.txt", "1 1 0 0 0 0.5 1 4 1 a.jpg", "ok")
add("colmap_images/no_feature_lines.txt", "1 1 0 0 0 0.5 1 4 1 a.jpg\n2 1 0 0 0 0.5 1 4 1 b.jpg\n", "expected the features of image 1")
add("colmap_images/rotation.txt", "1 0 0 0 0 0.5 1 4 1 a.jpg\n\n", "rotation of length 0")
add("colmap_images/nan.bin", struct.pack("<QI7dI", 1, 1, 1, 0, 0, 0, float("nan"), 1, 4, 1) + b"a\0" + bytes(8), "translation")
add("colmap_images/name_up.txt", "1 1 0 0 0 0.5 1 4 1 ../a.jpg\n\n", "leads out of the folder")
add("colmap_images/name_none.bin", struct.pack("<Q", 1) + IMAGE + b"\0" + bytes(8), "names no file")
add("colmap_images/name_open.bin", struct.pack("<Q", 1) + IMAGE + b"a" * 5000, "longer than 4096")
add("colmap_images/count_huge.bin", struct.pack("<Q", 1 << 60) + IMAGE, "at most")
add("colmap_images/features_huge.bin", struct.pack("<Q", 1) + IMAGE + b"a\0" + struct.pack("<Q", 1 << 61), "features, at most")
add("colmap_images/features_large.bin", struct.pack("<Q", 1) + IMAGE + b"a\0" + struct.pack("<Q", 1 << 20), "an image's features")
add("colmap_images/twice.txt", "1 1 0 0 0 0.5 1 4 1 a\n\n1 1 0 0 0 0.5 1 4 1 b\n\n", "image 1 stands twice")
POINT = struct.pack("<Q3d3Bd", 7, 1, 2, 3, 4, 5, 6, 0.5)
add("colmap_points/good.txt", "# points\n7 1 2 3 4 5 6 0.5 1 0 2 0\n8 0 0 0 0 0 0 -1\n", "ok")
add("colmap_points/good.bin", struct.pack("<Q", 1) + POINT + struct.pack("<Q2I", 1, 1, 0), "ok")
add("colmap_points/none.txt", "", "ok")
add("colmap_points/none.bin", bytes(8), "ok")
add("colmap_points/track_huge.bin", struct.pack("<Q", 1) + POINT + struct.pack("<Q", 1 << 61), "a track of")
add("colmap_points/track_large.bin", struct.pack("<Q", 1) + POINT + struct.pack("<Q", 1 << 19), "a point's track")
add("colmap_points/count_huge.bin", struct.pack("<Q", 1 << 55), "at most")
add("colmap_points/count_large.bin", struct.pack("<Q", 1 << 30), "points: ")
add("colmap_points/nan.bin", struct.pack("<QQ3d3BdQ", 1, 7, float("nan"), 2, 3, 4, 5, 6, 0.5, 0), "has the coordinate nan")
add("colmap_points/color.txt", "7 1 2 3 4 5 600 0.5\n", "a colour of 8 bits")
add("colmap_points/odd_track.txt", "7 1 2 3 4 5 6 0.5 1\n", "a feature of the track")

# Packed sets are read by data/, all others by io/.
for path, is_packed in [("expected.tsv", False), ("packed.tsv", True)]:
    lines = [f"{name}\t{message}\n" for name, message in EXPECTED if name.startswith("packed/") == is_packed]
    (HERE / path).write_text("".join(lines))
print(len(EXPECTED), "files")
