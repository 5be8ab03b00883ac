//! What is known of this machine before the first event: its clock, and what the header of a session says, or else the
//! system.

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::{
    GetSystemTimeAdjustment, GetSystemTimePreciseAsFileTime, GetTickCount64,
};
use windows_sys::Win32::System::Time::{GetTimeZoneInformation, TIME_ZONE_INFORMATION};

use crate::clock::{Clock, ClockKind, Ticks};
use crate::event::Pointer;
use crate::origin::{Machine, Origin, Platform};

use super::consumer::LogHeader;
use super::{process, system};

/// One moment on both clocks: QueryPerformanceCounter, which is that of recordings, and FILETIME.
pub fn now() -> (Ticks, i64) {
    let mut ticks = 0;
    let mut time = FILETIME::default();
    // SAFETY: both places live through the calls.
    unsafe {
        QueryPerformanceCounter(&mut ticks);
        GetSystemTimePreciseAsFileTime(&mut time);
    }
    (Ticks(ticks), (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)) as i64)
}

/// Where a recording with this sampling interval comes from, whose sessions started at `base`. What a merge adds to a
/// recording comes from the machine itself.
pub(super) fn origin(base: (Ticks, i64), header: &LogHeader, interval: u32) -> Origin {
    let platform = platform(header.platform);
    let clock = clock(base, header.frequency, &platform);
    let architecture = process::architecture();
    let variable = |name| std::env::var(name).ok();
    let machine = Machine {
        processors: header.processors,
        os_build: header.os_build,
        os_name: String::new(),
        // The header's own pointer size is wrong at times in live sessions.
        pointer: if matches!(architecture, 9 | 12) { Pointer::Bits64 } else { Pointer::Bits32 },
        architecture: Some(architecture),
        name: variable("COMPUTERNAME").unwrap_or_default(),
    };
    Origin {
        platform,
        interval: Some(interval),
        windows: variable("SystemRoot").unwrap_or_else(|| r"C:\Windows".to_owned()),
        volumes: process::volumes(),
        ..Origin::new(clock, machine)
    }
}

fn clock((base, base_utc): (Ticks, i64), mut frequency: u64, platform: &Platform) -> Clock {
    if frequency == 0 {
        let mut ticks = 0;
        // SAFETY: the place lives through the call.
        unsafe { QueryPerformanceFrequency(&mut ticks) };
        frequency = u64::try_from(ticks).unwrap_or(0).max(1);
    }
    Clock { kind: ClockKind::Qpc, frequency, base, base_utc, utc_offset: platform.utc_offset(base_utc) }
}

/// What the header of a live session leaves at 0 the system says. Which of it that is no document lists.
fn platform(header: Platform) -> Platform {
    fn or<T: PartialEq>(said: T, nothing: T, ask: fn() -> T) -> T {
        if said == nothing { ask() } else { said }
    }
    let nothing = Platform::default();
    Platform {
        version: or(header.version, nothing.version, system::version),
        timer_resolution: or(header.timer_resolution, nothing.timer_resolution, timer_resolution),
        cpu_mhz: or(header.cpu_mhz, nothing.cpu_mhz, system::cpu_mhz),
        boot: or(header.boot, nothing.boot, boot),
        time_zone: or(header.time_zone, nothing.time_zone, time_zone),
    }
}

/// When the system was started, to a clock interrupt.
fn boot() -> i64 {
    // SAFETY: no pointers.
    let milliseconds = unsafe { GetTickCount64() };
    now().1 - i64::try_from(milliseconds).unwrap_or(0).saturating_mul(10_000)
}

fn timer_resolution() -> u32 {
    let (mut adjustment, mut increment, mut disabled) = (0, 0, 0);
    // SAFETY: the places live through the call.
    let ok = unsafe { GetSystemTimeAdjustment(&mut adjustment, &mut increment, &mut disabled) };
    if ok == 0 { 0 } else { increment }
}

fn time_zone() -> [u8; 172] {
    let mut zone = TIME_ZONE_INFORMATION::default();
    // SAFETY: the structure lives through the call, and stays as it is if that fails.
    unsafe { GetTimeZoneInformation(&mut zone) };
    bytes_of(&zone)
}

/// The structure as files have it.
pub(super) fn bytes_of(zone: &TIME_ZONE_INFORMATION) -> [u8; 172] {
    let (standard, daylight) = (&zone.StandardDate, &zone.DaylightDate);
    let [standard, daylight] = [standard, daylight].map(|date| {
        let day = [date.wYear, date.wMonth, date.wDayOfWeek, date.wDay];
        let time = [date.wHour, date.wMinute, date.wSecond, date.wMilliseconds];
        [day, time].concat()
    });
    let mut bytes = Vec::with_capacity(172);
    bytes.extend(zone.Bias.to_le_bytes());
    for (name, date, bias) in
        [(&zone.StandardName, standard, zone.StandardBias), (&zone.DaylightName, daylight, zone.DaylightBias)]
    {
        bytes.extend(name.iter().copied().chain(date).flat_map(u16::to_le_bytes));
        bytes.extend(bias.to_le_bytes());
    }
    bytes.try_into().unwrap_or([0; 172])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says_is_believed_and_the_rest_the_system_says() {
        let (_, utc) = now();
        let asked = platform(Platform::default());
        assert_eq!(asked.version, [10, 0, 1, 5], "scripts/setup-windows makes Wine a Windows 10");
        assert!((1_000..=1_000_000).contains(&asked.timer_resolution), "{asked:?}");
        assert!(asked.cpu_mhz > 100, "{asked:?}");
        assert!((1..utc).contains(&asked.boot), "{asked:?}");
        assert!(asked.utc_offset(utc).is_some());
        let said = Platform {
            version: [10, 0, 1, 5],
            timer_resolution: 1,
            cpu_mhz: 2,
            boot: 3,
            time_zone: [4; 172],
        };
        assert_eq!(platform(said), said);
    }

    #[test]
    fn a_time_zone_has_the_layout_of_files() {
        let name = |text: &str| {
            let mut units = [0; 32];
            units.iter_mut().zip(text.encode_utf16()).for_each(|(place, unit)| *place = unit);
            units
        };
        let mut zone = TIME_ZONE_INFORMATION { Bias: -60, DaylightBias: -60, ..Default::default() };
        (zone.StandardName, zone.DaylightName) = (name("@tzres.dll,-322"), name("@tzres.dll,-321"));
        (zone.StandardDate.wMonth, zone.StandardDate.wDay, zone.StandardDate.wHour) = (10, 5, 3);
        (zone.DaylightDate.wMonth, zone.DaylightDate.wDay, zone.DaylightDate.wHour) = (3, 5, 2);
        let platform = Platform { time_zone: bytes_of(&zone), ..Platform::default() };
        // 2024-01-01 and 2024-07-01.
        let offsets = [154_497, 154_679].map(|day| platform.utc_offset(day * 864_000_000_000));
        assert_eq!(offsets, [Some(60), Some(120)]);
        assert_eq!(platform.time_zone.get(4..8), Some(&b"@\0t\0"[..]));
    }
}
