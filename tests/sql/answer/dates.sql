-- Dates: comparisons with text, parts, truncation, differences.
-- table: people

select count(*) from people where joined > '2004-06-30'

select count(*) from people where joined >= date '2004-01-01' and joined < date '2004-02-01'

select count(*) from people where joined between '2004-02-28' and '2004-03-01'

select count(*) from people where joined = '2004-02-29' or joined in ('2003-12-24', '2004-12-24')

select count(*) from people where year(joined) = 2004

select count(*) from people where month(joined) in (6, 7, 8) and day(joined) <= 15

select count(*) from people where extract(month from joined) = 12

select count(*) from people where extract(isodow from joined) > 5

select count(*) from people where date_part('quarter', joined) = 1

select count(*) from people where quarter(joined) = 2 and week(joined) > 20

select count(*) from people where dayofweek(joined) = 0 or dayofyear(joined) = 100

select count(*) from people where dayname(joined) = 'Friday' and monthname(joined) like 'J%'

select count(*) from people where date_trunc('month', joined) = '2004-05-01'

select count(*) from people where strftime(joined, '%Y-%m') = '2004-07'

select count(*) from people where last_day(joined) = joined

select count(*) from people where joined + interval 30 day > '2005-04-01'

select count(*) from people where joined - interval '1' month < date '2003-12-15'

select count(*) from people where date_diff('day', date '2004-01-01', joined) between 0 and 30

select count(*) from people where joined - date '2004-01-01' < 10

select count(*) from people where datesub('month', date '2003-12-01', joined) >= 12

select count(*) from people where joined > make_date(2004, 6, 15)

select count(*) from people where cast('2004-10-10' as date) <= joined and joined::varchar like '2004-1%'

select count(*) from people where 2004 - year(joined) + age > 40

select year(joined) as y, count(*) from people group by y order by y

select year(joined), month(joined), count(*), avg(score) from people group by 1, 2 order by 1, 2

select date_trunc('month', joined) as month, count(*) as n from people group by month order by n desc, month limit 5

select dayname(joined) as day, count(*) from people group by dayname(joined) having count(*) > 50 order by 2 desc, 1

select avg(date_diff('day', date '2004-01-01', joined)) from people where member

select quarter(joined) q, sum(balance) from people group by all order by q

select count(*) from people where joined::timestamp < timestamp '2004-05-01 12:00:00'
