//! The compiled methods of the order service.

/// When a method got a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compiled {
    /// Before the recording: only the rundown at its end tells it.
    Before,
    /// While it ran, in milliseconds: quickly first, then optimized, if at all.
    During { quick: i64, optimized: Option<i64> },
}

/// A method, told by its key in the call paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    pub key: &'static str,
    pub class: &'static str,
    pub name: &'static str,
    pub signature: &'static str,
    pub size: u32,
    pub compiled: Compiled,
}

const fn before(
    key: &'static str,
    class: &'static str,
    name: &'static str,
    signature: &'static str,
    size: u32,
) -> Method {
    Method { key, class, name, signature, size, compiled: Compiled::Before }
}

const fn during(method: Method, quick: i64, optimized: Option<i64>) -> Method {
    Method { compiled: Compiled::During { quick, optimized }, ..method }
}

pub(super) const METHODS: &[Method] = &[
    before("Main", "Orders.Program", "Main", "void  (class System.String[])", 0x1A4),
    before("Host.Run", "Orders.Hosting.ServiceHost", "Run", "instance void  ()", 0x260),
    before("Intake.Loop", "Orders.Intake.OrderIntake", "ReceiveLoop", "instance void  ()", 0x318),
    before(
        "Intake.Parse",
        "Orders.Intake.FixParser",
        "TryParse",
        "bool  (value class System.ReadOnlySpan`1<unsigned int8>,class Orders.Model.Order&)",
        0x7C2,
    ),
    before("Intake.Field", "Orders.Intake.FixParser", "ReadField", "int32  (unsigned int8&,int32)", 0x14E),
    before(
        "Intake.Route",
        "Orders.Intake.OrderRouter",
        "Route",
        "instance void  (class Orders.Model.Order)",
        0x1F0,
    ),
    before("Pool.Run", "Orders.Settlement.SettlementJob", "Execute", "instance void  (object)", 0x284),
    during(
        before(
            "Pool.Risk",
            "Orders.Settlement.RiskCheck",
            "Evaluate",
            "instance float64  (class Orders.Model.Trade)",
            0x3D6,
        ),
        180,
        Some(910),
    ),
    during(
        before(
            "Pool.Group",
            "Orders.Settlement.Netting",
            "GroupByAccount",
            "class System.Collections.Generic.Dictionary`2<int64,value class Orders.Model.Money> \
             (class System.Collections.Generic.List`1<class Orders.Model.Trade>)",
            0x52A,
        ),
        205,
        Some(940),
    ),
    during(
        before(
            "Pool.Lambda",
            "Orders.Settlement.Netting+<>c",
            "<GroupByAccount>b__4_0",
            "instance int64  (class Orders.Model.Trade)",
            0x38,
        ),
        206,
        None,
    ),
    during(before("Match.Loop", "Orders.Matching.Matcher", "Run", "instance void  ()", 0x2B4), 152, None),
    during(
        before(
            "Match.Order",
            "Orders.Matching.OrderBook",
            "Match",
            "instance int32  (class Orders.Model.Order)",
            0x688,
        ),
        154,
        Some(620),
    ),
    during(
        before(
            "Match.Best",
            "Orders.Matching.PriceLadder`1[System.__Canon]",
            "BestLevel",
            "instance class Orders.Matching.PriceLevel  (value class Orders.Model.Side)",
            0x19C,
        ),
        154,
        Some(625),
    ),
    during(
        before(
            "Match.Fill",
            "Orders.Matching.OrderBook",
            "Fill",
            "instance void  (class Orders.Model.Order,class Orders.Model.Order,int64)",
            0x2E8,
        ),
        158,
        Some(640),
    ),
    during(
        before(
            "Match.Compare",
            "Orders.Matching.PriceLevel",
            "CompareTo",
            "instance int32  (class Orders.Matching.PriceLevel)",
            0x64,
        ),
        155,
        Some(580),
    ),
    during(
        before(
            "Match.Price",
            "Orders.Pricing.NativePricer",
            "Quote",
            "float64  (int64,float64,float64)",
            0x12A,
        ),
        160,
        None,
    ),
    during(
        before("Match.Stub", "dynamicClass", "IL_STUB_PInvoke", "float64  (int64,float64,float64)", 0xD8),
        161,
        None,
    ),
    before("Journal.Loop", "Orders.Journal.JournalWriter", "DrainLoop", "instance void  ()", 0x2A0),
    before(
        "Journal.Append",
        "Orders.Journal.JournalWriter",
        "Append",
        "instance void  (value class System.ReadOnlySpan`1<class Orders.Model.Trade>)",
        0x3B8,
    ),
    during(
        before(
            "Journal.Encode",
            "Orders.Journal.TradeCodec",
            "Encode",
            "int32  (class Orders.Model.Trade,value class System.Span`1<unsigned int8>)",
            0x434,
        ),
        190,
        Some(890),
    ),
];

/// A body of a method: where, how large, from when, and in which tier (3 quick, 4 optimized).
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub method: &'static Method,
    pub start: u64,
    pub size: u32,
    /// Milliseconds; `None` is before the recording.
    pub from: Option<i64>,
    pub tier: u32,
}

/// All bodies, laid one after the other in the runtime's code heap, which lies so far from where it was.
pub(super) fn bodies(slide: u64) -> Vec<Body> {
    let mut next: u64 = 0x7FFA_F024_3000 + slide;
    let mut bodies = Vec::new();
    let mut lay = |method, size: u32, from, tier| {
        bodies.push(Body { method, start: next, size, from, tier });
        next = (next + u64::from(size)).next_multiple_of(0x20) + 0x40;
    };
    for method in METHODS {
        match method.compiled {
            Compiled::Before => lay(method, method.size, None, 4),
            Compiled::During { quick, optimized } => {
                let is_stub = method.class == "dynamicClass";
                lay(method, method.size, Some(quick), if is_stub { 2 } else { 3 });
                if let Some(optimized) = optimized {
                    lay(method, method.size * 5 / 8, Some(optimized), 4);
                }
            }
        }
    }
    bodies
}
