//! Times against jiff's own calendar, and the known instants of gaps and overlaps.

use jiff::civil;

use super::*;

/// The raw forms of a date and time, as the wire has them, counted by jiff's calendar.
fn days_since(start: civil::Date, date: civil::Date) -> i64 {
    (date - start).get_days().into()
}

fn date(year: i16, month: i8, day: i8) -> Date {
    let days = days_since(civil::date(1, 1, 1), civil::date(year, month, day));
    Date::new(u32::try_from(days).expect("after year 1"))
}

/// Ten-millionths of a second.
fn time(hour: u64, minute: u64, second: u64, fraction: u64) -> Time {
    Time::new(((hour * 60 + minute) * 60 + second) * 10_000_000 + fraction, 7)
}

fn datetime2(date: Date, time: Time) -> ColumnData<'static> {
    ColumnData::DateTime2(Some(DateTime2::new(date, time)))
}

fn datetime(date: civil::Date, ticks: u32) -> ColumnData<'static> {
    let days = days_since(civil::date(1900, 1, 1), date);
    ColumnData::DateTime(Some(DateTime::new(i32::try_from(days).expect("near"), ticks)))
}

#[test]
fn the_edges_of_each_types_range() {
    let last = time(23, 59, 59, 9_999_999);
    assert_eq!(json(ColumnData::Date(Some(date(1, 1, 1))), "date", &utc()), "-62135596800000");
    assert_eq!(json(ColumnData::Date(Some(date(9999, 12, 31))), "date", &utc()), "253402214400000");
    assert_eq!(json(datetime2(date(1, 1, 1), time(0, 0, 0, 0)), "datetime2", &utc()), "-62135596800000");
    assert_eq!(json(datetime2(date(9999, 12, 31), last), "datetime2", &utc()), "253402300799999");
    assert_eq!(json(datetime(civil::date(1753, 1, 1), 0), "datetime", &utc()), "-6847804800000");
    assert_eq!(json(datetime(civil::date(9999, 12, 31), 25_919_999), "datetime", &utc()), "253402300799997");
    let small = |days, minutes| ColumnData::SmallDateTime(Some(SmallDateTime::new(days, minutes)));
    assert_eq!(json(small(0, 0), "smalldatetime", &utc()), "-2208988800000");
    assert_eq!(json(small(u16::MAX, 1439), "smalldatetime", &utc()), "3453321540000", "2079-06-06T23:59");
    assert_eq!(json(ColumnData::Time(Some(last)), "time", &utc()), "86399999");
    assert_eq!(json(ColumnData::Time(Some(Time::new(86_399, 0))), "time", &utc()), "86399000");
}

/// The last hours of year 9999 lie past what a timestamp holds in any zone west of Greenwich.
#[test]
fn the_last_day_is_read_in_every_zone() {
    let last = datetime2(date(9999, 12, 31), time(23, 59, 59, 9_999_999));
    assert_eq!(json(last.clone(), "datetime2", &zone("Etc/GMT+12")), (253_402_300_799_999_i64 + 12 * 3_600_000).to_string());
    assert_eq!(json(last, "datetime2", &zone("Pacific/Kiritimati")), (253_402_300_799_999_i64 - 14 * 3_600_000).to_string());
    let first = ColumnData::Date(Some(date(1, 1, 1)));
    assert_eq!(json(first, "date", &zone("Etc/GMT-14")), (-62_135_596_800_000_i64 - 14 * 3_600_000).to_string());
}

#[test]
fn a_time_has_no_zone_and_is_never_negative() {
    let midnight = ColumnData::Time(Some(time(0, 0, 0, 0)));
    assert_eq!(json(midnight, "time", &zone("Pacific/Auckland")), "0");
    let morning = ColumnData::Time(Some(time(10, 15, 30, 1_234_567)));
    assert_eq!(json(morning, "time", &zone("Europe/Berlin")), "36930123");
}

#[test]
fn a_time_without_a_zone_is_read_in_the_configured_one() {
    let value = || datetime2(date(2026, 8, 5), time(10, 15, 30, 1_234_567));
    assert_eq!(json(value(), "datetime2", &utc()), "1785924930123");
    assert_eq!(json(value(), "datetime2", &zone("Europe/Berlin")), "1785917730123");
    assert_eq!(json(ColumnData::Date(Some(date(2026, 8, 5))), "date", &zone("Europe/Berlin")), "1785880800000");
    // 2026-08-05 10:15 as days since 1900 and minutes.
    let small = ColumnData::SmallDateTime(Some(SmallDateTime::new(46_237, 615)));
    assert_eq!(json(small, "smalldatetime", &zone("Europe/Berlin")), "1785917700000");
}

#[test]
fn a_skipped_time_moves_on_and_of_two_equal_ones_the_first_is_meant() {
    let berlin = zone("Europe/Berlin");
    assert_eq!(json(datetime2(date(2026, 3, 29), time(2, 30, 0, 0)), "datetime2", &berlin), "1774747800000");
    assert_eq!(json(datetime2(date(2026, 10, 25), time(2, 30, 0, 0)), "datetime2", &berlin), "1792888200000");
    // A day that began at one in the morning, and one that was left out whole.
    assert_eq!(json(ColumnData::Date(Some(date(2018, 11, 4))), "date", &zone("America/Sao_Paulo")), "1541300400000");
    assert_eq!(json(ColumnData::Date(Some(date(2011, 12, 30))), "date", &zone("Pacific/Apia")), "1325239200000");
}

#[test]
fn an_offset_is_not_applied_twice_and_the_zone_not_at_all() {
    // 00:01:05.0900948 -07:00, which the wire carries as 07:01:05.0900948 and an offset.
    let value = DateTimeOffset::new(DateTime2::new(date(2026, 6, 23), time(7, 1, 5, 900_948)), -420);
    assert_eq!(json(ColumnData::DateTimeOffset(Some(value)), "datetimeoffset", &zone("Asia/Tokyo")), "1782198065090");
}

#[test]
fn what_is_finer_than_a_millisecond_is_rounded_down_before_1970_too() {
    assert_eq!(json(datetime2(date(1969, 12, 31), time(23, 59, 59, 9_999_000)), "datetime2", &utc()), "-1");
    assert_eq!(json(datetime2(date(1969, 12, 31), time(23, 59, 59, 9_990_000)), "datetime2", &utc()), "-1");
    assert_eq!(json(datetime2(date(1969, 12, 31), time(23, 59, 59, 9_989_999)), "datetime2", &utc()), "-2");
    assert_eq!(json(datetime2(date(1970, 1, 1), time(0, 0, 0, 9_999)), "datetime2", &utc()), "0");
}

#[test]
fn a_datetime_is_rounded_as_sql_server_shows_it() {
    let day = civil::date(1970, 1, 1);
    let shown: Vec<String> = (0..7).map(|tick| json(datetime(day, tick), "datetime", &utc())).collect();
    assert_eq!(shown, ["0", "3", "7", "10", "13", "17", "20"]);
    assert_eq!(json(datetime(civil::date(1969, 12, 31), 25_919_999), "datetime", &utc()), "-3");
}

proptest! {
    /// Against jiff's own way from a wall clock to an instant, which is java.time's ("compatible").
    #[test]
    fn instants_are_those_of_a_calendar(days in 0_i64..3_652_000, ms in 0_u64..86_400_000, place in 0_usize..6) {
        let name = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia"][place];
        let civil = civil::date(1, 1, 1).checked_add(jiff::Span::new().days(days)).expect("before year 10000");
        let wall = civil.to_datetime(civil::Time::midnight()) + std::time::Duration::from_millis(ms);
        let expected = TimeZone::get(name).expect("a zone").to_ambiguous_timestamp(wall).compatible().expect("in range");
        let value = datetime2(Date::new(u32::try_from(days).expect("small")), Time::new(ms, 3));
        prop_assert_eq!(json(value, "datetime2", &zone(name)), expected.as_millisecond().to_string());
    }

    /// Against seconds and a fraction in floating point, which is exact enough for a day.
    #[test]
    fn every_scale_of_time_is_rounded_down(seconds in 0_u64..86_400, fraction in 0_u64..10_000_000, scale in 0_u8..=7) {
        let units = 10_u64.pow(scale.into());
        let kept = fraction / 10_u64.pow(u32::from(7 - scale));
        let value = ColumnData::Time(Some(Time::new(seconds * units + kept, scale)));
        let expected = seconds * 1000 + (kept * 1000) / units;
        prop_assert_eq!(json(value, "time", &utc()), expected.to_string());
    }
}
