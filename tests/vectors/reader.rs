// Reader of Kafka's index files without any library: prints each answer that differs from queries.tsv.
use std::{env, fs, path::Path, process::exit};

fn long(data: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(data[at..at + 8].try_into().unwrap())
}

fn int(data: &[u8], at: usize) -> i64 {
    i32::from_be_bytes(data[at..at + 4].try_into().unwrap()) as i64
}

fn list(row: &[i64]) -> String {
    format!("{row:?}").replace(' ', "")
}

fn search(keys: &[i64], target: i64, size: usize) -> (Option<usize>, Option<usize>) {
    let Some(last) = keys.len().checked_sub(1) else { return (None, None) };
    let hot = last.saturating_sub(8192 / size);
    let (mut low, mut high) = if keys[hot] < target { (hot, last) } else { (0, hot) };
    if keys[hot] >= target && keys[0] > target {
        return (None, Some(0));
    }
    while low < high {
        let middle = (low + high + 1) / 2;
        match keys[middle] {
            key if key == target => return (Some(middle), Some(middle)),
            key if key > target => high = middle - 1,
            _ => low = middle,
        }
    }
    (Some(low), if low == last { None } else { Some(low + 1) })
}

fn of_index(is_offset: bool, data: &[u8], base: i64, op: &str, args: &[i64]) -> String {
    let size = if is_offset { 8 } else { 12 };
    let row = |at| if is_offset { [base.wrapping_add(int(data, at)), int(data, at + 4)] } else { [long(data, at), base.wrapping_add(int(data, at + 8))] };
    let rows: Vec<[i64; 2]> = (0..data.len() / size).map(|n| row(n * size)).collect();
    let keys = |column: usize| rows.iter().map(|row| row[column]).collect::<Vec<_>>();
    let (slot, none) = match op {
        "sanity_check" => {
            let low = rows.last().is_some_and(|last| last[usize::from(!is_offset)] < base || !is_offset && last[0] < rows[0][0]);
            (None, (if low || data.len() % size != 0 { "error corrupt" } else { "null" }).to_string())
        }
        "entry" => (Some(args[0] as usize).filter(|slot| *slot < rows.len()), "error invalid_argument".to_string()),
        "lookup" => (search(&keys(0), args[0], size).0, list(&if is_offset { [base, 0] } else { [-1, base] })),
        _ => (search(&keys(1), (args[1] + args[2]) as i32 as i64, size).1, "null".to_string()),
    };
    slot.map_or(none, |slot| list(&rows[slot]))
}

fn of_transactions(is_new: bool, data: &[u8], base: i64, op: &str, args: &[i64]) -> String {
    let (mut found, mut complete, collects) = (vec![], false, op == "collect_aborted");
    for at in (0..data.len() / 34).map(|n| n * 34) {
        let row = [2, 10, 18, 26].map(|field| long(data, at + field));
        if (is_new && (data[at], data[at + 1]) != (0, 0)) || data[at] as i8 > 0 {
            return "error unsupported_version".to_string();
        }
        if op == "sanity_check" && row[2] < base {
            return "error corrupt".to_string();
        }
        if !collects || row[2] >= args[0] && row[1] < args[1] {
            found.push(list(&row));
        }
        complete = collects && row[3] >= args[1];
        if complete {
            break;
        }
    }
    let all = format!("[{}]", found.join(","));
    match op {
        "sanity_check" => "null".to_string(),
        "all_aborted" => all,
        _ => format!("{{\"aborted\":{all},\"complete\":{complete}}}"),
    }
}

fn main() {
    let word = env::args().nth(1).unwrap();
    let root = Path::new(&word);
    let release: Vec<u32> = root.file_name().unwrap().to_str().unwrap().split('.').map(|n| n.parse().unwrap()).collect();
    let (mut asked, mut wrong) = (0, 0);
    for line in fs::read_to_string(root.join("queries.tsv")).unwrap().lines() {
        let [name, kind, path, base, op, numbers, expected] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        if !["offset", "time", "transaction"].contains(&kind) {
            continue;
        }
        let (data, base) = (fs::read(root.join(path)).unwrap(), base.parse().unwrap());
        let args: Vec<i64> = numbers.split(',').filter_map(|n| n.parse().ok()).collect();
        let mine = match kind {
            "transaction" => of_transactions(release >= vec![4, 4], &data, base, op, &args),
            _ => of_index(kind == "offset", &data, base, op, &args),
        };
        asked += 1;
        if mine != expected {
            wrong += 1;
            println!("{name}: {op}({numbers}): {mine} instead of {expected}");
        }
    }
    println!("{asked} queries, {wrong} wrong");
    exit(i32::from(wrong > 0));
}
