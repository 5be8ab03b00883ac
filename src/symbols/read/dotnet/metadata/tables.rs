//! The table stream `#~` (ECMA-335 II.24.2.6) and the shape of its tables (II.22), those of portable PDBs included
//! (dotnet/runtime, docs/design/specs/PortablePdb-Metadata.md).

use super::super::cursor::Cursor;

/// The tables that names and source lines need, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // They are the standard's own names.
pub enum Table {
    Module = 0x00,
    TypeRef = 0x01,
    TypeDef = 0x02,
    MethodDef = 0x06,
    MemberRef = 0x0A,
    ModuleRef = 0x1A,
    TypeSpec = 0x1B,
    Assembly = 0x20,
    AssemblyRef = 0x23,
    NestedClass = 0x29,
    GenericParam = 0x2A,
    MethodSpec = 0x2B,
    Document = 0x30,
    MethodDebugInformation = 0x31,
    CustomDebugInformation = 0x37,
}

/// A column's type.
#[derive(Debug, Clone, Copy)]
enum Column {
    /// A constant of so many bytes.
    Fixed(u8),
    String,
    Guid,
    Blob,
    /// A row of one table.
    Row(u8),
    /// A row of one of several tables: a tag in the low bits says which.
    Coded(&'static Coded),
}

/// A coded index (II.24.2.6): how many tag bits, and the tables the tags stand for.
#[derive(Debug)]
struct Coded {
    tag_bits: u32,
    tables: &'static [u8],
}

const TYPE_DEF_OR_REF: &Coded = &Coded { tag_bits: 2, tables: &[0x02, 0x01, 0x1B] };
const HAS_CONSTANT: &Coded = &Coded { tag_bits: 2, tables: &[0x04, 0x08, 0x17] };
const HAS_CUSTOM_ATTRIBUTE: &Coded = &Coded {
    tag_bits: 5,
    tables: &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14, 0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26,
        0x27, 0x28, 0x2A, 0x2C, 0x2B,
    ],
};
const HAS_FIELD_MARSHAL: &Coded = &Coded { tag_bits: 1, tables: &[0x04, 0x08] };
const HAS_DECL_SECURITY: &Coded = &Coded { tag_bits: 2, tables: &[0x02, 0x06, 0x20] };
const MEMBER_REF_PARENT: &Coded = &Coded { tag_bits: 3, tables: &[0x02, 0x01, 0x1A, 0x06, 0x1B] };
const HAS_SEMANTICS: &Coded = &Coded { tag_bits: 1, tables: &[0x14, 0x17] };
const METHOD_DEF_OR_REF: &Coded = &Coded { tag_bits: 1, tables: &[0x06, 0x0A] };
const MEMBER_FORWARDED: &Coded = &Coded { tag_bits: 1, tables: &[0x04, 0x06] };
const IMPLEMENTATION: &Coded = &Coded { tag_bits: 2, tables: &[0x26, 0x23, 0x27] };
const CUSTOM_ATTRIBUTE_TYPE: &Coded = &Coded { tag_bits: 3, tables: &[0x06, 0x0A] };
const RESOLUTION_SCOPE: &Coded = &Coded { tag_bits: 2, tables: &[0x00, 0x1A, 0x23, 0x01] };
const TYPE_OR_METHOD_DEF: &Coded = &Coded { tag_bits: 1, tables: &[0x02, 0x06] };
const HAS_CUSTOM_DEBUG_INFORMATION: &Coded = &Coded {
    tag_bits: 5,
    tables: &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14, 0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26,
        0x27, 0x28, 0x2A, 0x2C, 0x2B, 0x30, 0x32, 0x33, 0x34, 0x35,
    ],
};

const TABLE_COUNT: usize = 0x38;

/// Every table's columns, by table number (II.22.2 to II.22.39; the *Ptr tables of edit-and-continue included, and from
/// 0x30 on the tables of portable PDBs).
const SCHEMA: [&[Column]; TABLE_COUNT] = {
    use Column::{Blob, Coded, Fixed, Guid, Row, String};
    [
        &[Fixed(2), String, Guid, Guid, Guid],      // 00 Module
        &[Coded(RESOLUTION_SCOPE), String, String], // 01 TypeRef
        &[Fixed(4), String, String, Coded(TYPE_DEF_OR_REF), Row(0x04), Row(0x06)], // 02 TypeDef
        &[Row(0x04)],                               // 03 FieldPtr
        &[Fixed(2), String, Blob],                  // 04 Field
        &[Row(0x06)],                               // 05 MethodPtr
        &[Fixed(4), Fixed(2), Fixed(2), String, Blob, Row(0x08)], // 06 MethodDef
        &[Row(0x08)],                               // 07 ParamPtr
        &[Fixed(2), Fixed(2), String],              // 08 Param
        &[Row(0x02), Coded(TYPE_DEF_OR_REF)],       // 09 InterfaceImpl
        &[Coded(MEMBER_REF_PARENT), String, Blob],  // 0A MemberRef
        &[Fixed(2), Coded(HAS_CONSTANT), Blob],     // 0B Constant
        &[Coded(HAS_CUSTOM_ATTRIBUTE), Coded(CUSTOM_ATTRIBUTE_TYPE), Blob], // 0C CustomAttribute
        &[Coded(HAS_FIELD_MARSHAL), Blob],          // 0D FieldMarshal
        &[Fixed(2), Coded(HAS_DECL_SECURITY), Blob], // 0E DeclSecurity
        &[Fixed(2), Fixed(4), Row(0x02)],           // 0F ClassLayout
        &[Fixed(4), Row(0x04)],                     // 10 FieldLayout
        &[Blob],                                    // 11 StandAloneSig
        &[Row(0x02), Row(0x14)],                    // 12 EventMap
        &[Row(0x14)],                               // 13 EventPtr
        &[Fixed(2), String, Coded(TYPE_DEF_OR_REF)], // 14 Event
        &[Row(0x02), Row(0x17)],                    // 15 PropertyMap
        &[Row(0x17)],                               // 16 PropertyPtr
        &[Fixed(2), String, Blob],                  // 17 Property
        &[Fixed(2), Row(0x06), Coded(HAS_SEMANTICS)], // 18 MethodSemantics
        &[Row(0x02), Coded(METHOD_DEF_OR_REF), Coded(METHOD_DEF_OR_REF)], // 19 MethodImpl
        &[String],                                  // 1A ModuleRef
        &[Blob],                                    // 1B TypeSpec
        &[Fixed(2), Coded(MEMBER_FORWARDED), String, Row(0x1A)], // 1C ImplMap
        &[Fixed(4), Row(0x04)],                     // 1D FieldRVA
        &[Fixed(4), Fixed(4)],                      // 1E EncLog
        &[Fixed(4)],                                // 1F EncMap
        &[Fixed(4), Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blob, String, String], // 20 Assembly
        &[Fixed(4)],                                // 21 AssemblyProcessor
        &[Fixed(4), Fixed(4), Fixed(4)],            // 22 AssemblyOS
        &[Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blob, String, String, Blob], // 23 AssemblyRef
        &[Fixed(4), Row(0x23)],                     // 24 AssemblyRefProcessor
        &[Fixed(4), Fixed(4), Fixed(4), Row(0x23)], // 25 AssemblyRefOS
        &[Fixed(4), String, Blob],                  // 26 File
        &[Fixed(4), Fixed(4), String, String, Coded(IMPLEMENTATION)], // 27 ExportedType
        &[Fixed(4), Fixed(4), String, Coded(IMPLEMENTATION)], // 28 ManifestResource
        &[Row(0x02), Row(0x02)],                    // 29 NestedClass
        &[Fixed(2), Fixed(2), Coded(TYPE_OR_METHOD_DEF), String], // 2A GenericParam
        &[Coded(METHOD_DEF_OR_REF), Blob],          // 2B MethodSpec
        &[Row(0x2A), Coded(TYPE_DEF_OR_REF)],       // 2C GenericParamConstraint
        &[],                                        // 2D to 2F stand for nothing
        &[],
        &[],
        &[Blob, Guid, Blob, Guid], // 30 Document
        &[Row(0x30), Blob],        // 31 MethodDebugInformation
        &[Row(0x06), Row(0x35), Row(0x33), Row(0x34), Fixed(4), Fixed(4)], // 32 LocalScope
        &[Fixed(2), Fixed(2), String], // 33 LocalVariable
        &[String, Blob],           // 34 LocalConstant
        &[Row(0x35), Blob],        // 35 ImportScope
        &[Row(0x06), Row(0x06)],   // 36 StateMachineMethod
        &[Coded(HAS_CUSTOM_DEBUG_INFORMATION), Guid, Blob], // 37 CustomDebugInformation
    ]
};

/// The widest table has nine columns.
const MAX_COLUMNS: usize = 9;

/// One table's place in the stream and the places of its columns in a row.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    rows: u32,
    start: usize,
    row_len: usize,
    /// Offset and width of each column, bytes.
    columns: [(u8, u8); MAX_COLUMNS],
}

/// The tables of one `#~` stream.
#[derive(Debug, Clone)]
pub struct Tables<'d> {
    stream: &'d [u8],
    extents: [Extent; TABLE_COUNT],
}

impl<'d> Tables<'d> {
    /// Reads row counts and lays out the tables; `None` when the header is cut. `elsewhere` counts the rows of tables
    /// that lie in another file and that columns of this one point to.
    pub(super) fn parse(stream: &'d [u8], elsewhere: &RowCounts) -> Option<Self> {
        let mut cursor = Cursor::new(stream, 6);
        let heap_sizes = cursor.u8()?;
        cursor.u8()?; // reserved
        let present = cursor.u64()?;
        cursor.u64()?; // which tables are sorted
        // A table beyond the known ones lies behind them and moves none; its count still has to be passed.
        let rows = row_counts(&mut cursor, present)?;
        // Bit 6: four more bytes before the rows (written by edit-and-continue compilers).
        if heap_sizes & 0x40 != 0 {
            cursor.u32()?;
        }
        let mut pointed_to = rows;
        for (here, elsewhere) in pointed_to.iter_mut().zip(elsewhere) {
            *here = (*here).max(*elsewhere);
        }
        let widths = Widths { heap_sizes, rows: &pointed_to };
        let mut start = cursor.pos();
        let mut extents = [Extent::default(); TABLE_COUNT];
        for ((extent, columns), &rows) in extents.iter_mut().zip(SCHEMA).zip(&rows) {
            let mut row_len = 0;
            for (place, &column) in extent.columns.iter_mut().zip(columns) {
                let width = widths.of(column);
                *place = (row_len, width);
                row_len += width;
            }
            extent.start = start;
            extent.row_len = usize::from(row_len);
            // Rows that the stream does not hold are not there; the widths go by what was declared.
            let fit = stream.len().saturating_sub(start).checked_div(extent.row_len).unwrap_or(0);
            extent.rows = rows.min(fit.try_into().unwrap_or(u32::MAX));
            start = start.saturating_add((rows as usize).saturating_mul(extent.row_len));
        }
        Some(Tables { stream, extents })
    }

    /// How many rows a table has.
    pub fn rows(&self, table: Table) -> u32 {
        self.extents.get(table as usize).map_or(0, |extent| extent.rows)
    }

    /// A cell's raw value; rows count from 1, columns from 0 in the standard's order.
    pub fn cell(&self, table: Table, row: u32, column: usize) -> Option<u32> {
        let extent = self.extents.get(table as usize)?;
        if row == 0 || row > extent.rows {
            return None;
        }
        let &(offset, width) = extent.columns.get(column)?;
        let mut cursor = Cursor::new(
            self.stream,
            extent.start + (row as usize - 1) * extent.row_len + usize::from(offset),
        );
        match width {
            2 => cursor.u16().map(u32::from),
            4 => cursor.u32(),
            _ => None,
        }
    }

    /// The last row whose `column` is not above `value`; the table must be sorted by that column.
    pub(super) fn last_not_above(&self, table: Table, column: usize, value: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.rows(table));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.cell(table, middle, column)? <= value {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        (low > 0).then_some(low)
    }
}

/// How many rows each table has, by table number.
pub(super) type RowCounts = [u32; 64];

/// Reads the counts of the tables that are `present`, a bit for each.
pub(super) fn row_counts(cursor: &mut Cursor<'_>, present: u64) -> Option<RowCounts> {
    let mut rows = [0; 64];
    for (number, rows) in rows.iter_mut().enumerate() {
        if present >> number & 1 != 0 {
            *rows = cursor.u32()?;
        }
    }
    Some(rows)
}

/// What decides a column's width: the heaps' sizes and the tables' row counts.
struct Widths<'a> {
    heap_sizes: u8,
    rows: &'a RowCounts,
}

impl Widths<'_> {
    fn of(&self, column: Column) -> u8 {
        match column {
            Column::Fixed(width) => width,
            Column::String => self.heap(1),
            Column::Guid => self.heap(2),
            Column::Blob => self.heap(4),
            Column::Row(table) => self.index(&[table], 16),
            Column::Coded(coded) => self.index(coded.tables, 16 - coded.tag_bits),
        }
    }

    fn heap(&self, bit: u8) -> u8 {
        if self.heap_sizes & bit != 0 { 4 } else { 2 }
    }

    /// 2 bytes while every row number of `tables` fits into `bits`, else 4.
    fn index(&self, tables: &[u8], bits: u32) -> u8 {
        let fits = |&table: &u8| self.rows.get(usize::from(table)).is_none_or(|&rows| rows < 1 << bits);
        if tables.iter().all(fits) { 2 } else { 4 }
    }
}
